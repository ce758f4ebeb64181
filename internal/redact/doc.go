// Package redact makes of what a program printed what may be shown to people who may not read Secrets.
//
// Does: takes out what looks like a key, a token or a password, and what a terminal would act on.
//
// Never: knows the secrets themselves: what looks like an ordinary word stays.
//
// Read first: Tail.
package redact

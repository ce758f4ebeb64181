// Package provider is the verb "provider".
//
// Does: groups the verbs for those who write providers.
//
// Never: does anything itself.
//
// Read first: the package lint.
package provider

// Package redact makes of what a program printed what may be shown to people who may not read Secrets.
//
// Does: takes out what looks like a key, a token or a password, and what a terminal would act on ([Tail]); shows only what has the form of
// ordinary text, of what a script of others printed ([Public]); finds the secrets in what a
// machine was given ([Named], [Opaque]) and takes them out wherever they occur ([Hide]).
//
// What looks like a secret: private keys, JSON web tokens, bootstrap tokens, certificate keys and hashes of passwords, by their form; what
// is assigned to a name that ends like that of a secret, as a variable, a field, a flag or a header; who logs in by a URL. What follows
// "token: " in a sentence is taken out, too; a file whose name ends like that of a secret is not a name of one ("cat: /run/token: No such file").
//
// What of a machine's data is a secret (package firstboot applies it to bootstrap data): anywhere, what looks like one, from 6 bytes on; in
// a file that its owner alone may read, each word that is opaque: 16 bytes or more, with letters and digits, and no path or name of an image.
//
// Bounded: a log is written by a node, which may be an attacker's. Of a log, no more is looked at than [Tail] returns and 16 KiB; each
// expression takes time in proportion to that.
//
// Never: reads a Secret; who has the data at hand passes them. A secret that has another form in the log (its base64, its hash) stays, and so
// does an ordinary word that nothing names.
//
// Read first: Tail, then forms.go.
package redact

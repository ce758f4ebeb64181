// Package redact makes untrusted text safe to show: it removes secrets from logs and script output, so that users who
// may not read Secrets can see the rest, and escapes control characters for terminals. [Tail] masks everything that
// looks like a key, a token or a password, and [Mask] does the same for a text that is not a log. [Public] is stricter,
// for the output of scripts that users wrote: it shows only words that have the form of ordinary text.
// [FindNamedSecrets] and [FindOpaqueWords] find the secrets in the data that a machine received, and [MaskSecrets]
// masks these secrets wherever they occur. The package does not read Secrets; callers pass the data. A secret that
// appears in another form (its base64 encoding, its hash) is not found, and neither is an ordinary word that no name
// marks as a secret.
//
// By form, the following count as secrets: private keys, JSON web tokens, bootstrap tokens, certificate keys, password
// hashes, values assigned to a name that ends like the name of a secret (a variable, field, flag or header), and
// credentials in a URL. A word that follows "token: " in a sentence is masked as well. A file path that ends like the
// name of a secret is not such a name ("cat: /run/token: No such file").
//
// In the data of a machine (package cloudinit applies these rules to bootstrap data), anything of at least 6 bytes that
// has the form of a secret is one. In a file that only its owner may read, so is every opaque word: at least 16 bytes,
// with letters and digits, and neither a path nor an image name.
//
// Logs come from nodes, which an attacker may control, so the work is bounded: no more of a log is processed than the
// part that [Tail] returns plus 16 KiB, and each expression runs in linear time.
//
// [Escape] and [EscapeWriter] escape characters that a terminal would interpret, such as the start of an escape
// sequence or a change of the text direction, as a Go string literal does. Names, conditions, events and logs come from
// users who may write an object or run code on a node; unescaped, they could clear the screen of a reader or show
// forged text.
package redact

// Package naming renders names of objects from templates that users provide. A [Template] is written in the language of
// Go's text/template with the variables of the kind. A name that is too long for a label or a host name is truncated
// and remains unique by its random part. Templates are untrusted input, so their time and memory are limited by their
// length. Random numbers are passed in by the caller. The controllers that create Machines and package topology render
// names with it. The webhooks of package admission validate the templates.
package naming

// Package cloudconfig reads a cloud-config document and says what it asks a machine to do.
//
// Does: takes bootstrap data as cloud-init would receive it (`#cloud-config`, optionally behind
// `## template: jinja`, optionally gzipped), fills in instance data, and returns the work as an ordered
// list of files to write and scripts to run, which a machine without cloud-init (a container) can carry
// out one by one. bootcmd, write_files, users, ntp and runcmd become steps, in the order in which
// cloud-init's own modules run, whatever their order in the document.
//
// Never: touches a file system, runs a command, or guesses: what it does not carry out is named in
// [Document.Skipped], and what it cannot read is an Invalid fault.
//
// Read first: [Parse], then [Step].
package cloudconfig

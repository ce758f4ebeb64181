// Package cloudconfig parses cloud-config documents. It takes bootstrap data in the form that cloud-init receives
// (`#cloud-config`, optionally preceded by `## template: jinja`, optionally gzipped), expands the instance data, and
// returns an ordered list of files to write and scripts to run. A machine without cloud-init, such as a container,
// can execute this list step by step. The sections bootcmd, write_files, users, ntp and runcmd become steps in the
// order of cloud-init's own modules, independent of their order in the document. Unsupported sections are listed in
// [Document.Skipped], and a document that cannot be parsed is an Invalid fault. The package neither accesses a file
// system nor runs commands. Start reading at [Parse] and [Step].
package cloudinit

// Package hosts implements the commands for hosts that are reached over SSH, and for their bundles. Package cli adds
// both commands, hosts ([Command]) and bundle ([BundleCommand]). "hosts add" pins the host keys of machines after the
// user has compared them, and creates their SSHHosts and Secrets; "hosts update" changes them. "hosts check" runs the
// preflight checks from this machine. "hosts reboot" drains, reboots and uncordons one host after the other. "hosts
// reinstalled" allows other namespaces to use a host again. "hosts list" and "hosts logs" change nothing. "hosts
// remove" deletes the bundles on a host and its SSHHost. "bundle" builds, lists, exports and imports bundles in the
// data directory (package bundle). The files are named after the subcommands.
package hosts

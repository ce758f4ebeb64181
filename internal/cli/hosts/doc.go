// Package hosts implements the commands for hosts that are reached over SSH, and for their bundles. "hosts add" pins the
// host keys of machines after the user has compared them, and creates their SSHHosts and Secrets. "hosts check" runs the
// preflight checks from this machine. "hosts reboot" drains, reboots and uncordons one host after the other. "bundle"
// builds, lists, exports and imports bundles in the data directory (package bundle).
package hosts

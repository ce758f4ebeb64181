// Package ignition renders a payload as an Ignition configuration for operating systems such as Flatcar. It builds an
// Ignition 2.3 configuration with files, users, disks, file systems, mounts, NTP, and the unit kubeadm.service, which
// runs the commands once. It merges the user's Container Linux Config and validates the result with Ignition's own
// validator.
//
//	Payload ─► files, passwd, disks, units ─► + additionalConfig (transpiled) ─► validated ─► JSON
//
// Ignition runs before the switch to the final root file system, so nothing is written to /run. The configuration of
// kubeadm is at [configPath], as expected by user commands. Settings that Ignition does not support are Invalid
// faults. The entry point is [renderIgnition].
package render

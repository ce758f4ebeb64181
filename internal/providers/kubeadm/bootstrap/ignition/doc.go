// Package ignition writes a payload as an Ignition configuration, for operating systems such as Flatcar.
//
// Does: builds an Ignition 2.3 configuration from the types of Ignition itself: files, users, disks, file systems,
// mounts and NTP, and the unit kubeadm.service, which runs the commands once; merges the Container Linux Config that
// a user adds; and has Ignition's own validator check the result.
//
//	Payload ─► files, passwd, disks, units ─► + additionalConfig (transpiled) ─► validated ─► JSON
//
// Ignition runs before the root file system is the running one, so nothing is written to /run, and kubeadm's
// configuration is at [ConfigPath], where commands of users expect it.
//
// Never: leaves out silently what Ignition cannot express: that is an Invalid fault.
//
// Read first: [Render].
package ignition

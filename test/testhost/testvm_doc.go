// Package testvm is a small in-memory backend of virtual machines for tests, which shows that a backend needs only a
// directory of its own. A [VMHost] starts a machine in a configurable time and counts the scripts that run in it. Its
// properties differ from those of containers and simulated machines: it reports no events, has no networks and images,
// and does not recreate a provisioned machine that is lost. The state of a bootstrap changes only when a test changes
// it.
package testhost

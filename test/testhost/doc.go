// Package testhost implements package backend in memory, for tests of the Local controllers only. A [Host] behaves like
// the container backend and can fail on demand, so that tests can interrupt every step of a plan once. A [VMHost] is a
// small backend of virtual machines, which shows that a backend needs only a package of its own. It starts a machine in
// a configurable time and counts the scripts that run in it. Its properties differ from those of containers and
// simulated machines: it reports no events, has no networks and images, and does not recreate a provisioned machine
// that is lost. The state of a bootstrap changes only when a test changes it.
package testhost

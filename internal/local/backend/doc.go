// Package backend defines the interface between the Local controllers and the implementations that run nodes. It
// defines the operations ([Networks], [Machines], [Scripts], [Watcher]) and their types, the properties by which
// decisions distinguish backends ([Capabilities]), and the names and labels of machines, networks and provider IDs on the
// host. Every operation is idempotent: it establishes a state instead of performing a step. Each backend is a
// subdirectory of this package, a member of spec.backend, and an entry in the provider's [Set].
package backend

// Package installation installs and deletes providers, their inventory objects and their prerequisites in a management
// cluster. A change is a [Plan], a list of [Step] values, which is computed before anything is written, displayed by
// --dry-run, and executed by [Runner.Run]:
//
//	request ────┐
//	inventory ──┼─ checks ─ Plan ──┬─ display
//	components ─┘                  └─ Run ─ wait until Deployments are available
//
// An installation first records the providers as incomplete in the inventory, and completes each inventory object when
// all objects of the provider exist. Every step is idempotent, so that the same command completes the installation
// after an interruption at any point; incomplete providers are included even if they are not named again.
//
// The field manager of the objects is slipway-clusterctl. The package does not read repositories, and never displays
// the data of a Secret.
package install

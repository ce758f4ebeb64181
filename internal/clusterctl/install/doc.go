// Package install installs and deletes providers, their inventory objects and their prerequisites in a management
// cluster (`slipway init` and `delete`). [ReadCluster] reads the state of the management cluster, [Choose] selects the
// providers, and a [ProviderLoader] loads them from their repositories. A change is a [Plan], a list of [Step] values,
// which is computed before anything is written ([Install], [Uninstall]), displayed by --dry-run, and executed by
// [Runner.Run]. `slipway upgrade apply` executes the plans of package providerupgrade in the same way. Every step is
// idempotent. An installation first records the providers as incomplete in the inventory, and completes each inventory
// object when all objects of the provider exist; therefore the same command completes the installation after an
// interruption at any point, and includes incomplete providers even if they are not named again. The field manager of
// the objects is slipway-clusterctl. The data of a Secret is never displayed. [VersionCheck] reports to the user that a
// newer release of Slipway is available.
//
//	request ────┐
//	inventory ──┼─ checks ─ Plan ──┬─ display
//	components ─┘                  └─ Run ─ wait until Deployments are available
//
// The built-in providers of a `slipway up` management cluster are recorded in the inventory ([RecordBuiltin]), so that
// other programs which read it, such as clusterctl, do not install a second core provider. Only the providers that
// clusterctl knows by name are recorded (cluster-api, and kubeadm for bootstrap and control plane), because clusterctl
// cannot plan upgrades of others without a default repository. Their version is the Cluster API version that they
// implement, which exists in the repository that clusterctl uses. The records have the mark of [provider.IsBuiltIn], and
// Slipway's own commands ignore them. They are updated as follows:
//
//	running, not recorded                  create the record
//	running, recorded by this package      update the record if the version has changed
//	running, recorded by another program   nothing: it was installed there before
//	not running, recorded by this package  delete the record
package install

// Package providerupgrade upgrades the providers of a management cluster (`slipway upgrade`). It lists the available
// versions ([AvailableUpgrades]), selects the providers to upgrade ([ChooseUpgrades]), checks the upgrade before
// anything is written, and computes the plan, which package install executes:
//
//	record the start of the upgrade in the inventory
//	migrate stored objects to versions of the new CRDs, while the old webhooks run
//	stop the Deployments of all changed providers
//	for each provider: delete objects missing in the new version, apply the others, and update its inventory object
//	optionally: wait until the Deployments are available; otherwise run the plan in reverse
//
// Customizations are fields of components that were not set by an installation. Those that the new version does not set
// are preserved; the others are listed before they are lost ([customisations]). Namespaces and CRDs are never deleted,
// and an upgrade that would make stored objects unreadable is not reversed.
package providerupgrade

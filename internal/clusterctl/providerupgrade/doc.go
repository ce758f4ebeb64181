// Package providerupgrade changes the versions of the providers of a management cluster.
//
// Does: says which versions there are ([Offers]); chooses what an upgrade is about ([Choose]); checks it before anything is
// written, and makes the plan (package installation carries it out):
//
//	records say which version begins
//	stored objects go to versions that the new CRDs have, while the old webhooks run
//	Deployments of all changed providers stop
//	each provider: what the new version lacks is deleted, the rest applied; its record
//	if asked for: wait until Deployments are available; if they are not, the same plan back
//
// Customisations are fields of components that someone else than an installation has set. Those that the new version does not set
// are kept; the others are listed before they are lost ([Customisations]).
//
// Never: writes; deletes namespaces or CRDs; goes back where stored objects could not be read any more.
//
// Read first: [Change], then [Plan].
package providerupgrade

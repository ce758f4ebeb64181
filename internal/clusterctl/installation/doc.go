// Package installation changes what is installed in a management cluster: providers, their record, and what they need.
//
// Does: a change is a [Plan], a list of [Step] values, made before anything is written, shown by --dry-run, and carried out
// by [Run]:
//
//	requested ──┐
//	inventory ──┼─ checks ─ Plan ──┬─ shown
//	components ─┘                  └─ Run ─ wait until Deployments are available
//
// An installation records first which providers it will install, as not complete, and completes each record when all objects
// of its provider are there. Every step may be repeated, so that the same command after a crash at any point completes the
// installation; what was recorded and is not complete is taken along even where it is not named again.
//
// Owns: the objects of components with the field manager slipway-clusterctl, and the records.
//
// Never: reads repositories; puts the data of a Secret into what is shown.
//
// Read first: [Step], then [Install].
package installation

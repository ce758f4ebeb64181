// Package pacing decides when a controller reconciles an object and when it writes the status of the object, so that
// several events share one reconciliation and several changes share one write. urgentChanges lists the changes that are
// written at once; all others wait for one fixed time. docs/decisions/0006-pacing.md has the reasons. All delays are
// computed from times that the caller passes in: the package never sleeps and never reads a clock. Only package
// reconciler uses it.
package pacing

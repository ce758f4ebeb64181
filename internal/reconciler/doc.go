// Package journey records the provisioning of a Machine, from its creation to its first Ready, as one OpenTelemetry
// trace. The spans are computed from the transition times of the Machine's conditions ([ProvisioningStages]), so that a restart of
// the manager loses nothing. The [ProvisioningRecorder] exports the trace when the Machine becomes Ready for the first time.
// The TraceIDs of the trace and its spans are derived from the Machine's UID: exporting a trace twice yields the same
// spans, and reconciliations of the Machine and its dependent objects join the same trace ([TraceWithin]). The package
// defines the names of the spans. It writes no objects and is independent of the exporter.
package reconciler

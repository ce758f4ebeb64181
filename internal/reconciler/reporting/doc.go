// Package reporting records what controllers do: the Reconciled condition of objects whose reconciliation fails
// ([Failures]), events ([EventLog]), metrics ([Metrics]), the names of related objects in log lines, and traces. Status
// and conditions that describe an object belong to its controller instead.
//
// The provisioning of a Machine, from its creation to its first Ready, is one OpenTelemetry trace. The spans are
// computed from the transition times of the Machine's conditions ([provisioningStages]), so that a restart of the
// manager loses nothing. All IDs are derived from the Machine's UID, so that exporting a trace twice yields the same
// spans, and reconciliations of the Machine and its dependent objects join the same trace ([StartSpan]). Package
// reconciler calls it in each reconciliation, and package manager creates the metrics and the recorder of traces.
package reporting

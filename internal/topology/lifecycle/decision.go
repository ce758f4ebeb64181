package lifecycle

import "time"

// Decision is the result of [Next]: what the topology controller may change in a Cluster now. If Calls is not empty,
// the other fields must be ignored.
type Decision struct {
	// Calls lists hooks to call. The caller adds their results to the Input and calls Next again.
	Calls []HookCall
	// Annotations of the Cluster that have to be changed before anything else is written; nil removes an annotation.
	Annotations map[string]*string
	// Suspended means that no object of the topology is created, changed or deleted.
	Suspended bool
	// ControlPlane and Workers have the permitted versions; Workers is in the order of the Input.
	ControlPlane Part
	Workers      []Part
	// Plan lists the remaining versions, for the status of the Cluster.
	Plan UpgradePlan
	// Blocking holds the hooks that block.
	Blocking []Blocked
	// Released holds the hooks with handlers that do not block.
	Released []Released
	// Failed holds errors of hooks and of the plan. They are returned after everything else is written, so that they
	// are retried with backoff.
	Failed []error
	// KeepsCondition means that the condition TopologyReconciled is not updated, because its complete state is not
	// known now.
	KeepsCondition bool
	// Reason and Message of the condition TopologyReconciled, which is true only for ReconcileSucceeded.
	Reason, Message string
	// Recheck is the delay before the next decision; zero to wait for an event.
	Recheck time.Duration
}

// Part is the permitted state of a control plane or worker. The topology controller computes the desired objects with
// it.
type Part struct {
	Version string
	// Frozen parts do not change their spec: a change now, and a change of the version soon after, would replace
	// Machines twice.
	Frozen bool
	// Withheld parts are not created yet.
	Withheld bool
}

// Blocked is a hook that blocks an operation. The topology controller reports it in waits and events.
type Blocked struct {
	Hook Hook
	// Action is the blocked operation.
	Action string
	By     []Blocker
	// Annotations of the Cluster, set by users, that block the same operation.
	Annotations []string
}

// Released is a hook that does not block. The topology controller reports it in an event.
type Released struct {
	Hook     Hook
	Handlers []string
}

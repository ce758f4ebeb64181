package lifecycle

import "time"

// Verdict is what is decided. While there is something to ask, the rest of it says nothing yet.
type Verdict struct {
	// Ask lists hooks to call. Their answers are added to the facts, then Next is called again.
	Ask []Question
	// Annotations of the Cluster to set before anything else is written, those alone that have to change; nil: remove it.
	Annotations map[string]*string
	// Held: nothing of the topology is created, changed or deleted.
	Held bool
	// ControlPlane and Workers say what these may have now; Workers in the order of the facts.
	ControlPlane Part
	Workers      []Part
	// Plan lists the versions that are still to be applied, for the status of the Cluster.
	Plan Route
	// Blocking are the hooks that hold something back.
	Blocking []Blocked
	// Released are the hooks with handlers that let go.
	Released []Released
	// Failed are problems of hooks and of the plan. They are returned as errors when everything else is written, so that
	// they are retried with backoff.
	Failed []error
	// Keep: the condition TopologyReconciled stays as it is, because not everything that it says is known now.
	Keep bool
	// Reason and Message of the condition TopologyReconciled, which is true for ReconcileSucceeded alone.
	Reason, Message string
	// Recheck is after which time to decide again; zero: only when something changes.
	Recheck time.Duration
}

// Part is what a control plane or worker may have now.
type Part struct {
	Version string
	// Frozen parts keep the spec that they have: a change now, and another of the version soon after, would replace
	// Machines twice.
	Frozen bool
	// Withheld parts are not created yet.
	Withheld bool
}

// Blocked is a hook that holds something back.
type Blocked struct {
	Hook Hook
	// Action is what is held back.
	Action string
	By     []Blocker
	// Annotations of the Cluster that hold back the same, set by people.
	Annotations []string
}

// Released is a hook that let something go.
type Released struct {
	Hook     Hook
	Handlers []string
}

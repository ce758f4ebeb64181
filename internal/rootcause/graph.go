package rootcause

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Graph gives access to the objects of a management cluster. Callers do not change what it returns. [Reader] and
// [Memory] implement it, and package fleet searches it, too.
type Graph interface {
	// Get returns an object, or false if it does not exist or cannot be read. Secrets have metadata only.
	Get(of Ref) (*unstructured.Unstructured, bool)
	// IsMissing reports whether an object is known not to exist. It is false for an object that may only be unreadable.
	IsMissing(of Ref) bool
	// Resolve returns the existing object that a message names by kind and name.
	Resolve(kind, namespace, name string) (Ref, bool)
	// Owned returns the objects that an object owns, sorted. A Cluster also owns all objects with its label that have no
	// other owner.
	Owned(of Ref) []Ref
	// Plans returns the last plans of Slipway's controllers for an object.
	Plans(of Ref) []Plan
	// HealthChecks returns the MachineHealthChecks of a Cluster.
	HealthChecks(namespace, cluster string) []*clusterv1.MachineHealthCheck
	// BeginSearch is called before an object is explained. The limits of its previous search do not matter any more.
	BeginSearch(of Ref)
	// ReachLimit records that the search for an object ended at a limit, so that explanations may be incomplete.
	ReachLimit(of Ref, limit string)
}

// Plan is the last plan of one controller for an object. The sources of plans convert the manager's diagnostics to it.
type Plan struct {
	Controller string
	Waits      []Wait
	Errors     []string
	// ErrorsSince is the time of the first of the failed reconciliations in a row, or zero.
	ErrorsSince time.Time
}

// Wait is a reason why a controller does nothing now.
type Wait struct {
	Reason, Message string
	// On lists the objects that the wait depends on. Their group may be empty.
	On []Ref
	// Since is the time when the wait began, or zero.
	Since time.Time
	// User is true if the wait lasts until a user acts.
	User bool
	// Timed is true if the wait ends with time.
	Timed bool
}

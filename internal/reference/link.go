package reference

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/sdk/contract"
)

// Role describes the role of a provider object for the object that references it. The Cluster, Machine and MachinePool
// controllers declare one for each of their references. An object is done if it reports the result that its contract
// requires of it, for example that it is provisioned.
type Role struct {
	// Owner is the kind that holds the reference; Name is the purpose of the object, such as "infrastructure".
	Owner schema.GroupVersionKind
	Name  string
	// Condition of the owner mirrors the condition Source of the object. If the object does not have Source, the
	// reason is DoneReason if the object is done and NotDoneReason otherwise.
	Condition, Source, DoneReason, NotDoneReason string
	// Expendable objects are no longer needed after they have been done once.
	Expendable bool
	// ReplacesController makes the owner the controller of the object even if an object of another kind controls it.
	ReplacesController bool
	// AnyContract reads failures from objects of every contract version, not only of those that define failures.
	AnyContract bool
}

// Link is a reference together with the referenced object. Controllers create it from their snapshot, which is the
// input of a reconciliation.
type Link struct {
	Role
	// From is the object that holds the reference; Cluster is the name of its Cluster.
	From    metav1.Object
	Cluster string
	Ref     clusterv1.ContractVersionedObjectReference
	// View is a view of the object as it was read.
	View contract.View
	// Reached is set if the object has been done before.
	Reached bool
	// Shared is set if the owner must not be the controller of the object.
	Shared bool
}

// Presence reports whether the object exists and, if it does not, why.
func (l Link) Presence() contract.Presence {
	if !l.Ref.IsDefined() {
		return contract.NotSet
	}
	return l.View.Target().Presence()
}

// Object returns the object. Its Unstructured is nil if there is no object.
func (l Link) Object() contract.Object { return l.View.Target() }

// IsGone reports whether there is nothing left to delete or to wait for. The Cluster and Machine controllers check it
// during a deletion.
func (l Link) IsGone() bool {
	p := l.Presence()
	return p == contract.NotSet || p == contract.Missing
}

// IsLost reports whether the object was in use and does not exist any more.
func (l Link) IsLost() bool { return l.Presence() == contract.Missing && l.Reached }

// IsDone reports whether the object exists, has no other controller, and reports that it is done. The controllers
// derive their initialization status from it.
func (l Link) IsDone() bool {
	return l.Presence() == contract.Found && l.conflictingController() == nil && l.View.Completion().Done()
}

// Problem returns a message for users with the change that is needed before the object can be used, or an empty string.
// Readable fields may be used regardless. Decide, ComputeCondition and [Events] show it.
func (l Link) Problem() string {
	o := l.View.Target()
	switch l.Presence() {
	case contract.Unreadable:
		return o.Problem
	case contract.Found:
		if rival := l.conflictingController(); rival != nil {
			return fmt.Sprintf("%s belongs to %s %s: refer to an object of its own in %s %s", l, rival.Kind, rival.Name, l.Owner.Kind, l.From.GetName())
		}
		if err := l.View.Err(); err != nil {
			return fmt.Sprintf("%s reports what its contract does not allow: %v", l, err)
		}
		return o.Problem
	}
	return ""
}

// String returns the kind and name of the object.
func (l Link) String() string { return l.Ref.Kind + " " + l.Ref.Name }

// IsBroken reports whether any of the links prevents a complete reconciliation of its owner, which is not being
// deleted. The Cluster and Machine controllers then do not report the observed generation.
func IsBroken(links ...Link) bool {
	for _, l := range links {
		if l.From.GetDeletionTimestamp().IsZero() && (l.IsLost() && !l.Expendable || l.Problem() != "") {
			return true
		}
	}
	return false
}

// Failure returns the first terminal failure that any of the objects reports.
func Failure(links ...Link) contract.Failure {
	for _, l := range links {
		if f := l.failure(); f != (contract.Failure{}) {
			if f.Message != "" {
				f.Message = fmt.Sprintf("Failure detected from %s: %s", l, f.Message)
			}
			return f
		}
	}
	return contract.Failure{}
}

func (l Link) failure() contract.Failure {
	switch {
	case l.Presence() != contract.Found:
		return contract.Failure{}
	case l.AnyContract:
		return l.Object().ReportedFailure()
	}
	return l.Object().Failure()
}

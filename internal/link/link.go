package link

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/sdk/contract"
)

// Role is what a provider's object is to the object that refers to it.
type Role struct {
	// Owner is the kind that refers; Name says what the object is to it, such as "infrastructure".
	Owner schema.GroupVersionKind
	Name  string
	// Condition of the owner repeats the condition Source of the object. Of one that does not have it, Good and Bad are the
	// reasons, by whether the object is done.
	Condition, Source, Good, Bad string
	// Expendable objects are not missed once they have been done.
	Expendable bool
	// TakesOver lets the owner control the object in the place of any other kind that controls it.
	TakesOver bool
	// AnyContract looks for failures in objects of every contract, and not only where the contract has them.
	AnyContract bool
}

// Link is a reference with what is at its end.
type Link struct {
	Role
	// From is the object that refers, a member of the Cluster of that name.
	From    metav1.Object
	Cluster string
	Ref     clusterv1.ContractVersionedObjectReference
	// View of the object, as it was read.
	View contract.View
	// Reached: the object has been done before.
	Reached bool
	// Shared: the owner does not control the object.
	Shared bool
}

// Presence tells whether the object is there and, if not, why.
func (l Link) Presence() contract.Presence {
	if !l.Ref.IsDefined() {
		return contract.NotSet
	}
	return l.View.Target().Presence()
}

// Object returns the object; its Unstructured is nil where there is none.
func (l Link) Object() contract.Object { return l.View.Target() }

// IsGone reports whether there is nothing to delete, and nothing to wait for.
func (l Link) IsGone() bool {
	p := l.Presence()
	return p == contract.NotSet || p == contract.Missing
}

// IsLost reports whether the object has been in use, and does not exist any more.
func (l Link) IsLost() bool { return l.Presence() == contract.Missing && l.Reached }

// IsDone reports whether the object is there, is the owner's to use, and says that it is done.
func (l Link) IsDone() bool {
	return l.Presence() == contract.Found && l.rival() == nil && l.View.Completion().Done()
}

// Problem says what a person has to change before the object can be relied on; empty: nothing. Fields that can be read may be
// used all the same.
func (l Link) Problem() string {
	o := l.View.Target()
	switch l.Presence() {
	case contract.Unreadable:
		return o.Problem
	case contract.Found:
		if rival := l.rival(); rival != nil {
			return fmt.Sprintf("%s belongs to %s %s: refer to an object of its own in %s %s", l, rival.Kind, rival.Name, l.Owner.Kind, l.From.GetName())
		}
		if err := l.View.Err(); err != nil {
			return fmt.Sprintf("%s reports what its contract does not allow: %v", l, err)
		}
		return o.Problem
	}
	return ""
}

// String names the object.
func (l Link) String() string { return l.Ref.Kind + " " + l.Ref.Name }

// IsBroken reports whether one of the links keeps its owner, which stays, from being reconciled wholly.
func IsBroken(links ...Link) bool {
	for _, l := range links {
		if l.From.GetDeletionTimestamp().IsZero() && (l.IsLost() && !l.Expendable || l.Problem() != "") {
			return true
		}
	}
	return false
}

// Failure is the first failure that one of the objects reports as final.
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

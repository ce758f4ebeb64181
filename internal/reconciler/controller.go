package reconciler

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Object is a kind whose conditions are in status.conditions. [NewReconciler] requires it.
type Object interface {
	client.Object
	GetConditions() []metav1.Condition
}

// Controller defines one controller for the driver. The Add function of a controller's package passes it to
// [NewReconciler]. O is the Go type of its kind, S the type of its snapshot. The functions New, Observe, Decide, Act
// and Report are required.
type Controller[O Object, S any] struct {
	// Name is the name of the controller; its field manager is "slipway-<name>".
	Name string
	// Finalizer is added to every object. If it is empty, objects get no finalizer and deleting objects are not
	// reconciled.
	Finalizer string
	// OnDeleted is called when an object no longer exists. The object was not necessarily deleted by a controller: a
	// move removes finalizers.
	OnDeleted func(ctx context.Context, key client.ObjectKey) error
	New       func() O
	// Adopt returns a mutation to write together with the finalizer, such as a label and an owner reference, or nil
	// if the mutation is not known yet.
	Adopt func(ctx context.Context, o O) (func(client.Object), error)
	// DeferFinalizer reports that the driver does not add the finalizer yet, because it does not protect anything or
	// because another controller adds it.
	DeferFinalizer func(o O) bool
	// Observe reads everything that Decide needs. It must not change o.
	Observe func(ctx context.Context, o O) (S, error)
	// Decide is pure and total. For an object that is being deleted, an idle plan means that its finalizer is
	// removed.
	Decide func(S) Plan
	// Read returns the snapshot extended with the requested read.
	Read func(ctx context.Context, s S, q ReadRequest) (S, error)
	// Act runs one action.
	Act func(ctx context.Context, s S, a Action) error
	// Report is pure. It computes the status and the events from the snapshot, the plan and its outcome.
	Report func(s S, p Plan, out Outcome) Report
	// ReportFailure is pure. It returns the status of an object for which there is no plan, because something could not be
	// read or the controller panicked. If it is nil, only the Reconciled condition reports the error and all other
	// conditions stay unchanged. That is correct for conditions that describe an object, but wrong for a condition
	// that claims that the object is reconciled.
	ReportFailure func(o O, now time.Time, err error) Report
	// WhilePaused returns how the controller handles a paused object. If it is nil, the object is not reconciled.
	WhilePaused func(o O) WhilePaused
}

// WhilePaused defines how a controller handles a paused object. isPaused (pause.go) reads it.
type WhilePaused struct {
	// Reconcile makes the driver reconcile the object although it is paused. The controller must then do only what the
	// administrator who paused the object requested.
	Reconcile bool
	// False are the controller's own positive conditions that are False with reason Paused meanwhile.
	False []string
}

package reconciler

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Object is a kind whose conditions are in status.conditions.
type Object interface {
	client.Object
	GetConditions() []metav1.Condition
}

// Controller defines one controller for the driver. O is the Go type of its kind, S the type of its snapshot.
type Controller[O Object, S any] struct {
	// Name is the name of the controller; its field manager is "slipway-<name>".
	Name string
	// Finalizer is added to every object. If it is empty, objects get no finalizer and deleting objects are not
	// reconciled.
	Finalizer string
	// AwaitFinalizer makes the driver wait until another controller, which handles the same event, has added the
	// finalizer. If both controllers added it, one of them would get a conflict every time.
	AwaitFinalizer bool
	// OnDeleted is called when an object no longer exists. The object was not necessarily deleted by a controller: a
	// move removes finalizers. If it is nil, there is nothing to clean up.
	OnDeleted func(ctx context.Context, key client.ObjectKey) error
	New       func() O
	// Adopt returns a mutation to write together with the finalizer, such as a label and an owner reference, or nil
	// if the mutation is not known yet. If Adopt itself is nil, only the finalizer is written.
	Adopt func(ctx context.Context, o O) (func(client.Object), error)
	// DeferFinalizer reports that the finalizer does not protect anything yet. The action that creates the first
	// dependent object then adds the finalizer in the same write. If it is nil, the finalizer is always added
	// first.
	DeferFinalizer func(o O) bool
	// Observe reads everything that Decide needs. It must not change o.
	Observe func(ctx context.Context, o O) (S, error)
	// Decide is pure and total. For an object that is being deleted, an idle plan means that its finalizer is
	// removed.
	Decide func(S) Plan
	// Read returns the snapshot extended with the requested read. It may be nil if Decide never sets Plan.Ask.
	Read func(ctx context.Context, s S, q ReadRequest) (S, error)
	// Act runs one action.
	Act func(ctx context.Context, s S, a Action) error
	// RunWithResult runs one [ResultAction] action and returns its result. It may be nil if there are no such actions.
	RunWithResult func(ctx context.Context, s S, a ResultAction) (any, error)
	// Report is pure. It computes the status and the events from the snapshot, the plan and its outcome.
	Report func(s S, p Plan, out Outcome) Report
	// ReportFailure is pure. It returns the status of an object for which there is no plan, because something could not be
	// read or the controller panicked. If it is nil, only the Reconciled condition reports the error and all other
	// conditions stay unchanged. That is correct for conditions that describe an object, but wrong for a condition
	// that claims that the object is reconciled.
	ReportFailure func(o O, now time.Time, err error) Report
	// ReconcilesPaused reports that an object is reconciled although it is paused. The controller must then do only
	// what the administrator who paused the object requested. If it is nil, paused objects are never reconciled.
	ReconcilesPaused func(o O) bool
	// FalseWhilePaused returns the types of the controller's own positive conditions that are False with reason
	// Paused while the object is paused. If it is nil, only the Paused condition reports the pause.
	FalseWhilePaused func(o O) []string
	// Urgent declares which status changes are written at once because something waits for them. All other changes
	// are combined and written up to [Setup].StatusInterval later.
	Urgent Urgent
}

package reconciler

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipwayhq/slipway/internal/reconciler/reporting"
)

// Plan is the result of the Decide function of a [Controller]: a value that the driver executes ([Reconciler]), the
// Report function of the controller reads, and `slipway explain` prints.
type Plan struct {
	// Stage is the stage of a process with several stages that the plan belongs to, such as a deletion. Report reads
	// it, so that no status is inferred from the first action or the first wait. Controllers without stages leave it
	// zero.
	Stage Stage
	// Actions run in order; the first failure ends the reconciliation.
	Actions []Action
	// Reads lists reads that are too costly for every reconciliation. The driver performs them and runs Decide again.
	Reads []ReadRequest
	// Waits lists why no further action is possible now, and which change ends each wait.
	Waits []Wait
	// Recheck is the delay until the next reconciliation. If it is zero, only a watch enqueues the object.
	Recheck time.Duration
}

// Stage is a stage of a process with several stages. Controllers set it with [Plan.Enter] in their Decide function and
// read it in their conditions.
type Stage struct {
	// Order is the position in the process. Each controller defines its own, starting with 1.
	Order int
	// Reason and Message describe the stage in a condition.
	Reason, Message string
}

// Enter sets the stage of the plan. Its message has the messages of all waits. If there is only one wait, or the stage
// has no reason of its own, the reason of the wait is more precise and replaces it. Decide functions call it.
func (p *Plan) Enter(order int, reason string) {
	p.Stage = Stage{Order: order, Reason: reason, Message: strings.Join(texts(p.Waits), "\n* ")}
	if n := len(p.Waits); n == 1 || n > 1 && reason == "" {
		p.Stage.Reason = p.Waits[0].Reason
	}
	if len(p.Waits) > 1 {
		p.Stage.Message = "* " + p.Stage.Message
	}
}

// Action is one step of a plan: a small value whose String is a phrase with the reason, such as "delete Machine m2:
// scale down, oldest". Actions are distinguished by type and never compared. Every action must be safe to repeat
// after a crash at any point. The Act function of the controller runs it.
type Action interface{ fmt.Stringer }

// ReadRequest is a read that Decide requests, as a small comparable struct. The driver passes it to the Read function
// of the controller.
type ReadRequest interface{ fmt.Stringer }

// Wait is a reason to do nothing now. A wait is not an error. Its JSON form is served by the diagnostics endpoint and
// must not change. Decide functions create it with [Plan.WaitFor].
type Wait struct {
	// Reason is a CamelCase condition reason.
	Reason string `json:"reason"`
	// Message describes for users the expected change and how the wait ends.
	Message string `json:"message"`
	// On lists the objects that the wait depends on, truncated to maxSubjects.
	On []Subject `json:"on,omitempty"`
	// Field is the field that has to change, or "condition" and a condition type. If it is empty, the object has to
	// be created or deleted.
	Field string `json:"field,omitempty"`
	// Until is the kind of change that ends the wait.
	Until Until `json:"until"`
	// Since is the time of the first of the consecutive plans with this wait. The store of plans sets it.
	Since time.Time `json:"since,omitzero"`
}

// Subject is an object that a wait depends on. Without a namespace it is in the namespace of the waiting object, or
// in the workload cluster. [Wait.For] and [Wait.ForAll] set it; `slipway explain` follows it to the object.
type Subject struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Until is the kind of change that ends a wait. The values are part of the JSON form of a [Wait].
type Until string

const (
	// untilChange waits for a change of another object, whose event enqueues the waiting object.
	untilChange Until = "change"
	// UntilTime waits for time to pass.
	UntilTime Until = "time"
	// UntilUser waits for a user to follow the instructions in the message.
	UntilUser Until = "person"
)

// maxSubjects limits the number of objects in a wait.
const maxSubjects = 10

func (w Wait) String() string { return w.Message }

// For adds an object that the wait depends on; it may be called several times. An object in another namespace is
// given as <namespace>/<name>.
func (w *Wait) For(kind, name string) *Wait {
	if len(w.On) < maxSubjects {
		namespace, local, found := strings.Cut(name, "/")
		if !found {
			namespace, local = "", name
		}
		w.On = append(w.On, Subject{Kind: kind, Namespace: namespace, Name: local})
	}
	return w
}

// ForAll adds objects of one kind.
func (w *Wait) ForAll(kind string, names []string) *Wait {
	for _, name := range names {
		w.For(kind, name)
	}
	return w
}

// ToChange marks the wait as ended by the creation, deletion or change of its objects. The field is optional.
func (w *Wait) ToChange(field string) { w.Field, w.Until = field, untilChange }

// ForTime marks the wait as ended by the passing of time.
func (w *Wait) ForTime() { w.Until = UntilTime }

// UntilUserActs marks the wait as ended by a user who follows its message.
func (w *Wait) UntilUserActs() { w.Until = UntilUser }

// Idle reports whether the plan has no actions, no reads and no waits. Decide functions and the driver check it, and
// the Machine controller for the phase.
func (p Plan) Idle() bool { return len(p.Actions) == 0 && len(p.Reads) == 0 && len(p.Waits) == 0 }

// Do adds actions to the plan; the driver runs them in this order. Decide functions call it.
func (p *Plan) Do(actions ...Action) { p.Actions = append(p.Actions, actions...) }

// WaitFor adds a wait and returns it, so that the caller can set its objects ([Wait.For]) and its end
// ([Wait.ToChange], [Wait.ForTime] or [Wait.UntilUserActs]). A test of the repository fails if the end is not set.
func (p *Plan) WaitFor(reason, message string, args ...any) *Wait {
	p.Waits = append(p.Waits, Wait{Reason: reason, Message: fmt.Sprintf(message, args...)})
	return &p.Waits[len(p.Waits)-1]
}

// RecheckIn requests another reconciliation in d or sooner. Durations of zero or less are ignored.
func (p *Plan) RecheckIn(d time.Duration) {
	if d > 0 && (p.Recheck == 0 || d < p.Recheck) {
		p.Recheck = d
	}
}

// Outcome is the result of running a plan. The driver passes it to the Report function of the controller.
type Outcome struct {
	Done []Action
	// Failed is the action that ended the reconciliation with Err, or nil.
	Failed Action
	Err    error
}

// Report is the status and the events that result from a reconciliation. The Report function of the controller returns
// it, and the driver writes it.
type Report struct {
	// Status is the complete status of the object in its encoding/json form. If it is nil, no status is written.
	// The driver adds the Paused condition.
	Status any
	// Events are recorded after the status was written.
	Events []Event
}

// UserActionEvents returns a warning event for every wait that only a user can end. Each wait is reported once, when
// its message first appears in the conditions. A condition must contain the message unchanged. The Report function of
// some controllers calls it with the conditions before and after the reconciliation.
func UserActionEvents(p Plan, before, after []metav1.Condition) []Event {
	var list []Event
	for _, w := range p.Waits {
		says := func(c metav1.Condition) bool { return strings.Contains(c.Message, w.Message) }
		if w.Until == UntilUser && slices.ContainsFunc(after, says) && !slices.ContainsFunc(before, says) {
			list = append(list, Warning(w.Reason, "%s", w.Message))
		}
	}
	return list
}

// Event is one Kubernetes event about the object. Report functions return events, and package reporting records them.
type Event = reporting.Event

// Normal returns an event of type Normal. Report functions call it.
func Normal(reason, message string, args ...any) Event {
	return reporting.Normal(reason, message, args...)
}

// Warning returns an event of type Warning.
func Warning(reason, message string, args ...any) Event {
	return reporting.Warning(reason, message, args...)
}

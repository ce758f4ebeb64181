package loop

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Plan is what Decide makes of a snapshot.
type Plan struct {
	// Actions in order; the first that fails ends the pass.
	Actions []Action
	// Ask lists facts too costly to read every time. They are answered, then Decide runs again.
	Ask []Question
	// Wait says why nothing more can be done now, and what will end it.
	Wait []Wait
	// Recheck is the earliest wake-up by time; zero: a watch will wake us.
	Recheck time.Duration
}

// Action is one thing to do: a small value whose String reads as a sentence that says why, such as "delete Machine m2: scale
// down, oldest". Actions are told apart by their type, and never compared. Each may be repeated after a crash at any point.
type Action interface{ fmt.Stringer }

// Question is a fact to find out, a small comparable struct.
type Question interface{ fmt.Stringer }

// Finding is an action of which there is more to say than that it was done or failed: [Controller].Find carries it out, and
// what it returns is kept in [Outcome].Found.
type Finding interface {
	Action
	// Finding marks the type.
	Finding()
}

// Wait is a reason to do nothing now. Waiting is not an error.
type Wait struct {
	// Reason is CamelCase, fit for a condition.
	Reason string `json:"reason"`
	// Message says for users what is waited for and what will end it.
	Message string `json:"message"`
	// On are the objects that are waited for, the first of them where they are many.
	On []Subject `json:"on,omitempty"`
	// Field of the object, or "condition" and a type, that has to change; empty: the object has to be created or deleted.
	Field string `json:"field,omitempty"`
	// Until says what ends the wait.
	Until Until `json:"until"`
}

// Subject is an object that is waited for. Without a namespace it is one of the same namespace, or of the workload cluster.
type Subject struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Until is what ends a wait.
type Until string

const (
	// UntilChange: the object that is waited for changes, which enqueues the one that waits.
	UntilChange Until = "change"
	// UntilTime: time passes.
	UntilTime Until = "time"
	// UntilPerson: a person does what the message says.
	UntilPerson Until = "person"
)

// maxSubjects is how many of the objects that are waited for are kept.
const maxSubjects = 10

// String returns the message.
func (w Wait) String() string { return w.Message }

// For says which object is waited for; it may be called for each of several. One of another namespace is named
// <namespace>/<name>.
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

// ForAll says that objects of one kind are waited for.
func (w *Wait) ForAll(kind string, names []string) *Wait {
	for _, name := range names {
		w.For(kind, name)
	}
	return w
}

// ToChange says that the wait ends when the object is created, deleted, or changes in the field, where one is given.
func (w *Wait) ToChange(field string) { w.Field, w.Until = field, UntilChange }

// ForTime says that the wait ends when time has passed.
func (w *Wait) ForTime() { w.Until = UntilTime }

// ForPerson says that the wait ends when a person does what its message says.
func (w *Wait) ForPerson() { w.Until = UntilPerson }

// Idle reports whether there is nothing to do and nothing to wait for.
func (p Plan) Idle() bool { return len(p.Actions) == 0 && len(p.Ask) == 0 && len(p.Wait) == 0 }

// Do adds actions.
func (p *Plan) Do(actions ...Action) { p.Actions = append(p.Actions, actions...) }

// WaitFor adds a wait. It is returned to say at once which object it is about ([Wait.For]) and what ends it ([Wait.ToChange],
// [Wait.ForTime] or [Wait.ForPerson]); a test of the repository fails where that is not said.
func (p *Plan) WaitFor(reason, message string, args ...any) *Wait {
	p.Wait = append(p.Wait, Wait{Reason: reason, Message: fmt.Sprintf(message, args...)})
	return &p.Wait[len(p.Wait)-1]
}

// RecheckIn asks for a wake-up in d or sooner. Durations of zero and less ask for nothing.
func (p *Plan) RecheckIn(d time.Duration) {
	if d > 0 && (p.Recheck == 0 || d < p.Recheck) {
		p.Recheck = d
	}
}

// Outcome is what became of a plan.
type Outcome struct {
	// Done lists the actions that were carried out.
	Done []Action
	// Failed is the action that ended the pass, nil if none did.
	Failed Action
	// Err is why it failed.
	Err error
	// Found is what actions found out while they were carried out, see [Finding].
	Found []any
}

// Found returns what an action has found out, by its type.
func Found[T any](out Outcome) (T, bool) {
	for _, found := range out.Found {
		if t, ok := found.(T); ok {
			return t, true
		}
	}
	var none T
	return none, false
}

// Report is what a controller says after a pass.
type Report struct {
	// Status is the complete status of the object, as encoding/json writes it; nil writes none.
	// The driver adds the Paused condition.
	Status any
	// Events to record once the status is written.
	Events []Event
}

// Event is one Kubernetes event about the object.
type Event struct {
	// Type is Normal where empty.
	Type    string
	Reason  string
	Message string
}

// Normal returns an event of type Normal.
func Normal(reason, message string, args ...any) Event {
	return Event{Type: corev1.EventTypeNormal, Reason: reason, Message: fmt.Sprintf(message, args...)}
}

// Warning returns an event of type Warning.
func Warning(reason, message string, args ...any) Event {
	return Event{Type: corev1.EventTypeWarning, Reason: reason, Message: fmt.Sprintf(message, args...)}
}

package loop

import (
	"fmt"
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

// Action is one thing to do: a small comparable struct whose String reads as a sentence that says why, such
// as "delete Machine m2: scale down, oldest". It may be repeated after a crash at any point.
type Action interface{ fmt.Stringer }

// Question is a fact to find out, a small comparable struct.
type Question interface{ fmt.Stringer }

// Wait is a reason to do nothing now. Waiting is not an error.
type Wait struct {
	// Reason is CamelCase, fit for a condition.
	Reason string
	// Message says for users what is waited for and what will end it.
	Message string
}

// String returns the message.
func (w Wait) String() string { return w.Message }

// Idle reports whether there is nothing to do and nothing to wait for.
func (p Plan) Idle() bool { return len(p.Actions) == 0 && len(p.Ask) == 0 && len(p.Wait) == 0 }

// Do adds actions.
func (p *Plan) Do(actions ...Action) { p.Actions = append(p.Actions, actions...) }

// WaitFor adds a wait.
func (p *Plan) WaitFor(reason, message string, args ...any) {
	p.Wait = append(p.Wait, Wait{Reason: reason, Message: fmt.Sprintf(message, args...)})
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

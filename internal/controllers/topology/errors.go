package topology

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

const (
	// maxRefusal is the maximum length in bytes of an API server's or webhook's text in a message. Both limits are
	// Slipway's choice, so that the TopologyReconciled condition stays readable.
	maxRefusal = 1000
	// maxRefused is the maximum number of failed steps in a message.
	maxRefused = 3
)

// stepError is the error of one action of the controller. The TopologyReconciled condition shows its message; several
// actions can fail in one reconciliation, and each message describes only its own action.
type stepError struct {
	step reconciler.Action
	err  error
	// patches names the patches of the class that change the object of the step, or is empty.
	patches string
}

func (e *stepError) Error() string { return e.step.String() + ": " + e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

// brief describes which object could not be written, and why. The condition lists it if several actions failed
// (decide.go).
func (e *stepError) brief() string {
	if f := fault.As(e.err); f != nil {
		return withCause(f)
	}
	switch a := e.step.(type) {
	case create:
		return e.refused(a.Part.Want, a.Part.Want.GetName(), "created")
	case apply:
		name := a.Part.Want.GetName()
		if a.Part.Live != nil {
			name = a.Part.Live.GetName()
		}
		return e.refused(a.Part.Want, name, "changed")
	case scale:
		return e.refused(a.Part.Want, a.Part.Live.GetName(), "scaled")
	}
	return e.Error()
}

func (e *stepError) refused(o *unstructured.Unstructured, name, what string) string {
	return fmt.Sprintf("%s %s cannot be %s: %s%s%s", o.GetKind(), name, what, refusal(e.err), remedy(e.err), e.patches)
}

// refusal returns the reason of a rejection from the API server's response, without the content of the request.
func refusal(err error) string {
	text := err.Error()
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		text = status.Status().Message
	}
	if len(text) > maxRefusal {
		return strings.ToValidUTF8(text[:maxRefusal], "") + " …"
	}
	return text
}

// withCause returns the message of a fault. It includes the cause if a user has to correct it.
func withCause(f *fault.Fault) string {
	text := f.Message
	if f.Cause != nil && f.Kind == fault.Invalid && !strings.Contains(text, f.Cause.Error()) {
		text += ": " + f.Cause.Error()
	}
	return text
}

// remedy returns instructions for a control plane of a kind without replicas in a topology that sets replicas.
func remedy(err error) string {
	if strings.Contains(err.Error(), ".spec.replicas: field not declared in schema") {
		return "; this kind has no replicas: remove spec.topology.controlPlane.replicas from the Cluster"
	}
	return ""
}

// stepErrors returns the step errors within a joined and wrapped error, in order.
func stepErrors(err error) []*stepError {
	if failed, ok := err.(*stepError); ok {
		return []*stepError{failed}
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []*stepError
		for _, e := range joined.Unwrap() {
			out = append(out, stepErrors(e)...)
		}
		return out
	}
	if inner := errors.Unwrap(err); inner != nil {
		return stepErrors(inner)
	}
	return nil
}

// stepError returns the error of a step with the patches that change its object, or nil if err is nil. act calls it for
// the error of each action.
func (s snapshot) stepError(step reconciler.Action, err error) error {
	if err == nil {
		return nil
	}
	out := &stepError{step: step, err: err}
	if part := partOf(step); part != nil {
		out.patches = s.ChangedBy(s.Compiled.Program, part, err)
	}
	return out
}

package topology

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/loop"
)

const (
	// maxRefusal is how many bytes of what an API server or a webhook answers a message has.
	maxRefusal = 1000
	// maxRefused is how many steps that failed a message names.
	maxRefused = 3
)

// stepError is the error of one of several steps. Users read about that step alone.
type stepError struct {
	step loop.Action
	err  error
	// patches says which patches of the class change the object of the step; empty: none does.
	patches string
}

func (e *stepError) Error() string { return e.step.String() + ": " + e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

// brief says which object could not be written, and why.
func (e *stepError) brief() string {
	if f := fault.As(e.err); f != nil {
		return withCause(f)
	}
	switch a := e.step.(type) {
	case Create:
		return e.refused(a.Part.Want, a.Part.Want.GetName(), "created")
	case Apply:
		name := a.Part.Want.GetName()
		if a.Part.Live != nil {
			name = a.Part.Live.GetName()
		}
		return e.refused(a.Part.Want, name, "changed")
	case Scale:
		return e.refused(a.Part.Want, a.Part.Live.GetName(), "scaled")
	}
	return e.Error()
}

func (e *stepError) refused(o *unstructured.Unstructured, name, what string) string {
	return fmt.Sprintf("%s %s cannot be %s: %s%s%s", o.GetKind(), name, what, refusal(e.err), remedy(e.err), e.patches)
}

// refusal is why something was refused: what the API server answered, without what was sent to it.
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

// withCause is the message of a fault, with the cause where a person has to correct that.
func withCause(f *fault.Fault) string {
	text := f.Message
	if f.Cause != nil && f.Kind == fault.Invalid && !strings.Contains(text, f.Cause.Error()) {
		text += ": " + f.Cause.Error()
	}
	return text
}

// remedy is for a control plane of a kind without replicas, in a topology that was written for another one.
func remedy(err error) string {
	if strings.Contains(err.Error(), ".spec.replicas: field not declared in schema") {
		return "; this kind has no replicas: remove spec.topology.controlPlane.replicas from the Cluster"
	}
	return ""
}

// stepErrors are those that an error was joined and wrapped of, in their order.
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

// stepError is the error of a step, with the patches that change its object; nil: there is none.
func (s Snapshot) stepError(step loop.Action, err error) error {
	if err == nil {
		return nil
	}
	out := &stepError{step: step, err: err}
	if part := partOf(step); part != nil {
		out.patches = s.ChangedBy(s.Compiled.Program, part, err)
	}
	return out
}

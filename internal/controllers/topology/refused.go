package topology

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/topology"
	"github.com/slipwayhq/slipway/internal/topology/patch"
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
		out.patches = s.patchesOf(part, err)
	}
	return out
}

// patchesOf says which patches of the class change an object that the API refuses, and which variables they read: the field that is
// refused is in no template that a person wrote.
func (s Snapshot) patchesOf(part *topology.Part, err error) string {
	if s.Compiled.Program == nil || s.Class == nil {
		return ""
	}
	kind := part.Want.GetKind()
	if !part.Role.IsTemplate() {
		kind += "Template"
	}
	var texts []string
	for _, change := range s.Compiled.Program.Changing(patch.Selected{
		Role: topology.PatchRole(part.Role), Class: s.workerClass(part.Key), APIVersion: part.Want.GetAPIVersion(), Kind: kind,
	}, refusedFields(part, err)) {
		text := change.Patch
		if len(change.Variables) > 0 {
			text += " (variables " + strings.Join(change.Variables, ", ") + ")"
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return ""
	}
	return fmt.Sprintf("; it is changed by the patches of ClusterClass %s: %s", s.Class.Name, strings.Join(texts, ", "))
}

// workerClass is the class of the worker that a part belongs to; empty: it belongs to none.
func (s Snapshot) workerClass(key topology.Key) string {
	workers := s.Cluster.Spec.Topology.Workers
	switch key.OfWorker().Role {
	case topology.Deployment:
		for _, w := range workers.MachineDeployments {
			if w.Name == key.Worker {
				return w.Class
			}
		}
	case topology.Pool:
		for _, w := range workers.MachinePools {
			if w.Name == key.Worker {
				return w.Class
			}
		}
	}
	return ""
}

// refusedFields are the fields that an API server or a webhook refuses, as a template has them; empty: it names none.
func refusedFields(part *topology.Part, err error) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var out []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == "" {
			return nil
		}
		field := cause.Field
		if !part.Role.IsTemplate() {
			field = "spec.template." + field
		}
		out = append(out, field)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

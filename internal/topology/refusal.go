package topology

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipwayhq/slipway/internal/topology/patch"
)

// ChangedBy says which patches of the class change an object that the API refuses, and which variables they read: the field that is
// refused is in no template that a person wrote.
func (s Snapshot) ChangedBy(program *patch.Program, part *Part, err error) string {
	if program == nil || s.Class == nil {
		return ""
	}
	kind := part.Want.GetKind()
	if !part.Role.IsTemplate() {
		kind += "Template"
	}
	var texts []string
	for _, change := range program.Changing(patch.Selected{
		Role: roles()[part.Role], Class: s.workerClass(part.Key), APIVersion: part.Want.GetAPIVersion(), Kind: kind,
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
func (s Snapshot) workerClass(key Key) string {
	workers := s.Cluster.Spec.Topology.Workers
	switch key.OfWorker().Role {
	case Deployment:
		for _, w := range workers.MachineDeployments {
			if w.Name == key.Worker {
				return w.Class
			}
		}
	case Pool:
		for _, w := range workers.MachinePools {
			if w.Name == key.Worker {
				return w.Class
			}
		}
	}
	return ""
}

// refusedFields are the fields that an API server or a webhook refuses, as a template has them; empty: it names none.
func refusedFields(part *Part, err error) []string {
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

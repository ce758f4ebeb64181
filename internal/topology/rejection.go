package topology

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipwayhq/slipway/internal/topology/patch"
)

// ChangedBy returns a text for the error message of the topology controller when the API rejects an object: the patches
// of the class that change the object, and the variables that they read. Users need this because the rejected field may
// not be in any template that they wrote. The text is empty if no patch changes the object.
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

// workerClass returns the class of the worker to which a part belongs, or an empty string.
func (s Snapshot) workerClass(key Key) string {
	for _, w := range Workers(s.Cluster.Spec.Topology) {
		if w.Key == key.OfWorker() {
			return w.Class
		}
	}
	return ""
}

// refusedFields returns the fields that an API server or webhook rejected, as paths in the template, or nothing if the
// error has none.
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

package whatif

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// applier is the field manager of `kubectl apply`.
const applier = "kubectl-client-side-apply"

// Refusal is a part of the change that the API would refuse, as it would say.
type Refusal struct {
	Object
	Message string `json:"message"`
}

// change makes the change and returns what was refused. What comes after a refusal is tried, as kubectl does.
func (t *trial) change(ctx context.Context, c Change) []Refusal {
	var out []Refusal
	writer := t.world.Client()
	for _, u := range c.Apply {
		if err := apply(ctx, writer, u); err != nil {
			out = append(out, Refusal{Object: objectOf(u), Message: refusal(err) + versionHint(u, err)})
		}
		if isKind(u, "ClusterClass") { // what is applied next may be a Cluster of it, whose variables are those of its status
			if err := t.world.Proceed(ctx); err != nil {
				break
			}
		}
	}
	for _, u := range c.Delete {
		if err := client.IgnoreNotFound(writer.Delete(ctx, u.DeepCopy())); err != nil {
			out = append(out, Refusal{Object: objectOf(u), Message: refusal(err)})
		}
	}
	return out
}

// versionHint is for an object that was read, edited and passed on with the version that it had then: its status may have changed since.
func versionHint(u *unstructured.Unstructured, err error) string {
	if !apierrors.IsConflict(err) || u.GetResourceVersion() == "" {
		return ""
	}
	return "; remove metadata.resourceVersion from the manifest, or read the object again"
}

func refusal(err error) string {
	if meta.IsNoMatchError(err) {
		return fmt.Sprintf("%s; install the provider that it belongs to", err)
	}
	if status, ok := err.(apierrors.APIStatus); ok {
		return status.Status().Message
	}
	if strings.Contains(err.Error(), "unrecognized type: string") { // the converter's words, without the field
		return "a number stands where a text belongs, as in a version: write it in quotes"
	}
	return err.Error()
}

// apply does what `kubectl apply` does: it creates the object, or merges it with what was applied last and what there is.
func apply(ctx context.Context, c client.Client, wanted *unstructured.Unstructured) error {
	wanted = wanted.DeepCopy()
	annotate(wanted)
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(wanted.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(wanted), live)
	if apierrors.IsNotFound(err) {
		return c.Create(ctx, wanted, client.FieldOwner(applier))
	}
	if err != nil {
		return err
	}
	modified, err := json.Marshal(wanted.Object)
	if err != nil {
		return err
	}
	current, err := json.Marshal(live.Object)
	if err != nil {
		return err
	}
	original := []byte(live.GetAnnotations()[corev1.LastAppliedConfigAnnotation])
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current)
	if err != nil {
		return fmt.Errorf("merging with what was applied last: %w", err)
	}
	if string(patch) == "{}" {
		return nil
	}
	return c.Patch(ctx, live, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(applier))
}

// annotate notes what was applied, as kubectl does.
func annotate(u *unstructured.Unstructured) {
	annotations := u.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	u.SetAnnotations(annotations)
	text, err := json.Marshal(u.Object)
	if err != nil {
		return // what cannot be encoded is refused a moment later
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[corev1.LastAppliedConfigAnnotation] = string(text)
	u.SetAnnotations(annotations)
}

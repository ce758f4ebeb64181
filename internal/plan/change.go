package plan

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

// applier is the field manager of `kubectl apply`, so that the plan has the same field ownership.
const applier = "kubectl-client-side-apply"

// Refusal is a part of the change that the API would reject, with the API's error message. `slipway plan` prints it and
// exits with an error.
type Refusal struct {
	Object
	Message string `json:"message"`
}

// change applies the proposed change to the copy of the management cluster, after the controllers have settled ([Run]),
// and returns the rejected parts. Like kubectl, it continues after a rejection.
func (t *simulation) change(ctx context.Context, c Change) []Refusal {
	var out []Refusal
	writer := t.world.Client()
	for _, u := range c.Apply {
		if err := apply(ctx, writer, u); err != nil {
			out = append(out, Refusal{Object: objectOf(u), Message: refusal(err) + versionHint(u, err)})
		}
		if isKind(u, "ClusterClass") { // a Cluster of this class may follow; its variables are validated against the status of the class
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

// versionHint returns a hint for a manifest that still contains the resourceVersion from when it was read. The status
// may have changed since.
func versionHint(u *unstructured.Unstructured, err error) string {
	if !apierrors.IsConflict(err) || u.GetResourceVersion() == "" {
		return ""
	}
	return "; remove metadata.resourceVersion from the manifest, or read the object again"
}

// refusal returns the message of the API for a rejection.
func refusal(err error) string {
	if meta.IsNoMatchError(err) {
		return fmt.Sprintf("%s; install the provider that it belongs to", err)
	}
	if status, ok := err.(apierrors.APIStatus); ok {
		return status.Status().Message
	}
	if strings.Contains(err.Error(), "unrecognized type: string") { // the converter's message without the field
		return "a number is used instead of a string, for example as a version: quote it"
	}
	return err.Error()
}

// apply works like `kubectl apply`: it creates the object, or merges it with the last applied configuration and the
// current state.
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
		return fmt.Errorf("merging with the last applied configuration: %w", err)
	}
	if string(patch) == "{}" {
		return nil
	}
	return c.Patch(ctx, live, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(applier))
}

// annotate sets the last applied configuration, as kubectl does.
func annotate(u *unstructured.Unstructured) {
	annotations := u.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	u.SetAnnotations(annotations)
	text, err := json.Marshal(u.Object)
	if err != nil {
		return // an object that cannot be encoded is rejected later
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[corev1.LastAppliedConfigAnnotation] = string(text)
	u.SetAnnotations(annotations)
}

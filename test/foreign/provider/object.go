package provider

import (
	"context"
	"reflect"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Set sets a field of an object, below spec or status.
func Set(u *unstructured.Unstructured, value any, path ...string) {
	m := u.Object
	for _, name := range path[:len(path)-1] {
		next, ok := m[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			m[name] = next
		}
		m = next
	}
	m[path[len(path)-1]] = value
}

// SetCondition sets a condition; the time of its transition changes with its status.
func SetCondition(u *unstructured.Unstructured, conditionType string, status metav1.ConditionStatus, message string) {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	c := map[string]any{"type": conditionType, "status": string(status), "reason": "Foreign" + string(status), "message": message,
		"lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}
	for i, item := range list {
		old, _ := item.(map[string]any)
		if old["type"] == conditionType {
			if old["status"] == c["status"] {
				c["lastTransitionTime"] = old["lastTransitionTime"]
			}
			list[i] = c
			Set(u, list, "status", "conditions")
			return
		}
	}
	Set(u, append(list, any(c)), "status", "conditions")
}

// patch writes what f changes of an object: its metadata and spec, then its status.
func patch(ctx context.Context, c client.Client, u *unstructured.Unstructured, f func()) error {
	before := u.DeepCopy()
	f()
	after := u.DeepCopy()
	if !reflect.DeepEqual(without(before), without(after)) {
		if err := c.Patch(ctx, u, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	if reflect.DeepEqual(before.Object["status"], after.Object["status"]) {
		return nil
	}
	base := after.DeepCopy()
	delete(base.Object, "status")
	if had, ok := before.Object["status"]; ok {
		base.Object["status"] = had
	}
	return c.Status().Patch(ctx, after, client.MergeFrom(base))
}

func without(u *unstructured.Unstructured) map[string]any {
	out := u.DeepCopy().Object
	delete(out, "status")
	return out
}

// ownerOf is the name of the owner of a kind of Cluster API; empty: there is none yet.
func ownerOf(u *unstructured.Unstructured, kinds ...string) (kind, name string) {
	for _, ref := range u.GetOwnerReferences() {
		for _, kind := range kinds {
			if ref.Kind == kind && ref.APIVersion == clusterv1.GroupVersion.String() {
				return kind, ref.Name
			}
		}
	}
	return "", ""
}

// NodeName is the name of the Node with a provider ID.
func NodeName(id string) string {
	return "node-" + strings.NewReplacer("foreign://", "", "/", "-").Replace(id)
}

// ID is the provider ID of a machine.
func ID(namespace, name string) string { return "foreign://" + namespace + "/" + name }

package clusterresourceset

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/manifest"
)

// content is the parsed data of a ConfigMap or Secret, which the controller applies to workload clusters. The
// controller reads it when decide requests it.
type content struct {
	// Hash is a hash of all data. ClusterResourceSetBindings record it: if its computation changes, sets with the
	// strategy Reconcile are applied once more.
	Hash string
	// Objects are the objects in the order in which they are applied.
	Objects []*unstructured.Unstructured
	// Problem explains why the data cannot be parsed, or is empty. If it is set, there are no objects.
	Problem string
}

// read parses the data of a ConfigMap or Secret in the order of its keys and documents. Within one value, objects
// are sorted so that dependencies come first. The function answer calls it when [decide] has requested the content.
func read(data map[string][]byte) content {
	sum := sha256.New()
	var c content
	for _, key := range slices.Sorted(maps.Keys(data)) {
		fmt.Fprintf(sum, "%q %q\n", key, data[key]) // never fails
		objects, err := documents(data[key])
		if err != nil && c.Problem == "" {
			c.Problem = fmt.Sprintf("key %s: %s", key, err)
		}
		slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return priority(a) - priority(b) })
		c.Objects = append(c.Objects, objects...)
	}
	c.Hash = "sha256:" + hex.EncodeToString(sum.Sum(nil))
	if c.Problem != "" {
		c.Objects = nil
	}
	return c
}

// documents parses YAML or JSON documents, JSON arrays of objects, and lists.
func documents(text []byte) ([]*unstructured.Unstructured, error) {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		text = slices.Concat([]byte(`{"apiVersion":"v1","kind":"List","items":`), bytes.TrimSpace(text), []byte("}"))
	}
	return manifest.Objects(text)
}

// order returns the kinds to apply first, because others depend on them, and the kinds to apply last. All other
// kinds come between.
func order() (first, last []string) {
	return []string{
			"Namespace", "CustomResourceDefinition", "PriorityClass", "StorageClass", "ResourceQuota", "LimitRange", "NetworkPolicy",
			"PodDisruptionBudget", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
			"Secret", "ConfigMap", "PersistentVolume", "PersistentVolumeClaim", "Service",
			"DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment", "StatefulSet", "Job", "CronJob",
		}, []string{
			"HorizontalPodAutoscaler", "Ingress", "APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
		}
}

// priority returns the position of the object's kind in the order; smaller values are applied first.
func priority(u *unstructured.Unstructured) int {
	first, last := order()
	if i := slices.Index(first, u.GetKind()); i >= 0 {
		return i
	}
	if i := slices.Index(last, u.GetKind()); i >= 0 {
		return len(first) + 1 + i
	}
	return len(first)
}

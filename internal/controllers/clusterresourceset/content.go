package clusterresourceset

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// content is the parsed data of a ConfigMap or Secret.
type content struct {
	// Hash is a hash of all data.
	Hash string
	// Objects are the objects in the order in which they are applied.
	Objects []*unstructured.Unstructured
	// Problem explains why the data cannot be parsed, or is empty. If it is set, there are no objects.
	Problem string
}

// read parses the data of a ConfigMap or Secret in the order of its keys and documents. Within one value, objects
// are sorted so that dependencies come first.
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

// documents parses YAML or JSON documents, JSON lists of objects, and objects of kind List.
func documents(text []byte) ([]*unstructured.Unstructured, error) {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		var items []map[string]any
		if err := json.Unmarshal(text, &items); err != nil {
			return nil, fmt.Errorf("is not a list of objects in JSON: %w", err)
		}
		return objects(items)
	}
	var all []*unstructured.Unstructured
	for r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := r.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("is not a stream of YAML documents: %w", err)
		}
		var content map[string]any
		if err := yaml.Unmarshal(document, &content); err != nil {
			return nil, fmt.Errorf("is neither YAML nor JSON: %w", err)
		}
		if len(content) == 0 { // only comments
			continue
		}
		found, err := objects([]map[string]any{content})
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
}

// objects returns the objects; lists are replaced by their items.
func objects(contents []map[string]any) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, content := range contents {
		u := &unstructured.Unstructured{Object: content}
		if u.GetAPIVersion() == "" || u.GetKind() == "" {
			return nil, errors.New("has a document without apiVersion or kind")
		}
		if items, ok := content["items"].([]any); ok && strings.HasSuffix(u.GetKind(), "List") {
			inner := make([]map[string]any, 0, len(items))
			for _, item := range items {
				m, ok := item.(map[string]any)
				if !ok {
					return nil, fmt.Errorf("has a %s with an item that is no object", u.GetKind())
				}
				inner = append(inner, m)
			}
			found, err := objects(inner)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
			continue
		}
		if u.GetName() == "" {
			return nil, fmt.Errorf("has a %s without metadata.name", u.GetKind())
		}
		out = append(out, u)
	}
	return out, nil
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

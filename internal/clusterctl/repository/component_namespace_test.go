package repository_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
)

// A Namespace in a template becomes the one that the template's objects go to.
func TestSetNamespaceNamesNamespaces(t *testing.T) {
	object := func(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion(apiVersion)
		o.SetKind(kind)
		o.SetNamespace(namespace)
		o.SetName(name)
		return o
	}
	objects := []*unstructured.Unstructured{
		object("v1", "Namespace", "", "theirs"), object("cluster.x-k8s.io/v1beta2", "Cluster", "theirs", "c"), object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "r"),
	}
	repository.SetNamespace(objects, "ours")
	for i, want := range []string{"/ours", "ours/c", "/r"} {
		if got := objects[i].GetNamespace() + "/" + objects[i].GetName(); got != want {
			t.Errorf("%s is %s, want %s", objects[i].GetKind(), got, want)
		}
	}
}

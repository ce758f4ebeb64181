package manager_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/move"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// readObjects returns the objects of a file, in a namespace.
func readObjects(namespace, path string) ([]*unstructured.Unstructured, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	var out []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(o); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		o.SetNamespace(namespace)
		out = append(out, o)
	}
}

// createFile creates the objects of a file; the first ones may have to wait for their CRDs and for the webhooks.
func createFile(t *testing.T, c client.Client, namespace, path string) {
	t.Helper()
	objects, err := readObjects(namespace, path)
	must(t, err)
	for _, o := range objects {
		eventually(t, "create "+o.GetKind()+" "+o.GetName(), func() error { return client.IgnoreAlreadyExists(c.Create(t.Context(), o)) })
	}
}

// createFleet creates the simulated cluster of examples/fleet.yaml.
func createFleet(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	createFile(t, c, namespace, filepath.Join("..", "..", "examples", "fleet.yaml"))
}

// touched is an annotation whose value means nothing.
const touched = "test.slipway.dev/touched"

// ownerGraph is who owns what: "Kind name" and its owners, as "group/version Kind name", with "controller" where it is.
type ownerGraph map[string][]string

// sweep finds all objects of a namespace of the kinds that we own, and Secrets and ConfigMaps.
func sweep(t *testing.T, c client.Client, namespace string) []unstructured.Unstructured {
	t.Helper()
	all, err := crds.All()
	must(t, err)
	kinds := []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("Secret"), corev1.SchemeGroupVersion.WithKind("ConfigMap")}
	for _, crd := range all {
		for _, v := range crd.Spec.Versions {
			if v.Storage && crd.Spec.Scope == "Namespaced" {
				kinds = append(kinds, schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind})
			}
		}
	}
	var out []unstructured.Unstructured
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		must(t, c.List(t.Context(), list, client.InNamespace(namespace)))
		for _, o := range list.Items {
			if o.GetName() != "kube-root-ca.crt" {
				out = append(out, o)
			}
		}
	}
	return out
}

// owners draws the graph, in which owners that do not exist are marked.
func owners(objects []unstructured.Unstructured) ownerGraph {
	uids := map[string]bool{}
	for _, o := range objects {
		uids[string(o.GetUID())] = true
	}
	out := ownerGraph{}
	for _, o := range objects {
		list := []string{}
		for _, ref := range o.GetOwnerReferences() {
			text := fmt.Sprintf("%s %s %s", ref.APIVersion, ref.Kind, ref.Name)
			if ref.Controller != nil && *ref.Controller {
				text += " controller"
			}
			if !uids[string(ref.UID)] {
				text += " that does not exist"
			}
			list = append(list, text)
		}
		slices.Sort(list)
		out[fmt.Sprintf("%s %s (%s)", o.GetKind(), o.GetName(), o.GetUID())] = list
	}
	return out
}

// named is the graph with one entry for all objects of the same kind and owners, whose random names do not matter:
// "Kind" and the owners' kinds.
func (g ownerGraph) named() map[string][]string {
	kind := func(text string) string {
		words := strings.Fields(text)
		if words[len(words)-1] == "controller" {
			return words[1] + " controller"
		}
		return words[1]
	}
	out := map[string][]string{}
	for o, owners := range g {
		words := strings.Fields(o)
		list := []string{"none"}
		if len(owners) > 0 {
			list = nil
		}
		for _, owner := range owners {
			list = append(list, kind(owner))
		}
		slices.Sort(list)
		out[words[0]] = slices.Compact(slices.Sorted(slices.Values(append(out[words[0]], strings.Join(list, " and ")))))
	}
	return out
}

// matrix is who owns what in Cluster API's documentation, for the kinds that exist here. A Cluster without a topology does
// not control its parts (CL-04). LocalMachines remember the pool that they were made for.
func matrix() map[string][]string {
	return map[string][]string{
		"Cluster":                   {"none"},
		"ClusterResourceSet":        {"none"},
		"ClusterResourceSetBinding": {"ClusterResourceSet"},
		"ConfigMap":                 {"ClusterResourceSet"},
		"HostedControlPlane":        {"Cluster"},
		"KubeadmConfig":             {"Machine controller", "MachinePool controller"},
		"KubeadmConfigTemplate":     {"Cluster"},
		"LocalCluster":              {"Cluster"},
		"LocalMachine":              {"LocalMachinePool and Machine controller", "Machine controller"},
		"LocalMachinePool":          {"MachinePool controller"},
		"LocalMachineTemplate":      {"Cluster"},
		"Machine":                   {"Cluster", "MachinePool controller", "MachineSet controller"},
		"MachineDeployment":         {"Cluster"},
		"MachineDrainRule":          {"none"},
		"MachineHealthCheck":        {"Cluster"},
		"MachinePool":               {"Cluster"},
		"MachineSet":                {"Cluster", "MachineDeployment controller"},
		"Secret":                    {"ClusterResourceSet", "HostedControlPlane controller", "KubeadmConfig controller"},
	}
}

// whole waits until every Machine is Ready, and the graph stands still as it should.
func whole(t *testing.T, c client.Client, namespace string) ownerGraph {
	t.Helper()
	var g ownerGraph
	eventually(t, "everything is there and Ready", func() error {
		objects := sweep(t, c, namespace)
		for _, o := range objects {
			if !slices.Contains([]string{"Machine", "MachineDeployment", "MachinePool", "Cluster"}, o.GetKind()) {
				continue
			}
			if !isTrue(o, "Available") {
				return fmt.Errorf("%s %s is not Available: %v", o.GetKind(), o.GetName(), o.Object["status"])
			}
		}
		g = owners(objects)
		if diff := cmp.Diff(matrix(), g.named()); diff != "" {
			return fmt.Errorf("owners (-want +got):\n%s", diff)
		}
		return nil
	})
	return g
}

func isTrue(o unstructured.Unstructured, condition string) bool {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	return slices.ContainsFunc(list, func(entry any) bool {
		c := entry.(map[string]any)
		return c["type"] == condition && c["status"] == "True"
	})
}

// disown removes all owner references, and then touches everything, as whatever happens next would.
func disown(t *testing.T, c client.Client, objects []unstructured.Unstructured) {
	t.Helper()
	patch := func(o unstructured.Unstructured, f func(*unstructured.Unstructured)) {
		before := o.DeepCopy()
		f(&o)
		must(t, c.Patch(t.Context(), &o, client.MergeFrom(before)))
	}
	for _, o := range objects {
		patch(o, func(o *unstructured.Unstructured) { o.SetOwnerReferences(nil) })
	}
	for _, o := range objects {
		patch(o, func(o *unstructured.Unstructured) {
			annotations := maps.Clone(o.GetAnnotations())
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[touched] += "I"
			o.SetAnnotations(annotations)
		})
	}
}

// isFound: everything in the namespace that a provider has made is found from the Clusters, by who owns it.
func isFound(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	moved, err := move.Snapshot(t.Context(), c, graph.Scope{Namespace: namespace})
	must(t, err)
	found := map[graph.ID]bool{}
	for _, o := range moved {
		found[graph.IDOf(o)] = true
	}
	providers := 0
	for _, o := range sweep(t, c, namespace) {
		group := o.GroupVersionKind().Group
		if !strings.HasPrefix(group, "infrastructure.") && !strings.HasPrefix(group, "bootstrap.") && !strings.HasPrefix(group, "controlplane.") {
			continue
		}
		providers++
		if id := graph.IDOf(&o); !found[id] {
			t.Errorf("%s belongs to no Cluster", id)
		}
	}
	if providers < 10 {
		t.Errorf("only %d objects of providers", providers)
	}
}

// TestOwnersComeBack: whoever owned something owns it again after all owner references were lost, and nothing is made or
// deleted meanwhile.
func TestOwnersComeBack(t *testing.T) { // OR-01, CC2-13, CC2-15
	server := apiserver.Start(t, apiserver.Options{})
	c := newClient(t, server)
	must(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}))
	startProcess(t, server)
	createFleet(t, c, "ns")
	must(t, c.Patch(t.Context(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "fleet"}},
		client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"labels": {"resources": "fleet"}}}`)))) // for the ClusterResourceSet
	createFile(t, c, "ns", filepath.Join("testdata", "owners.yaml"))
	before := whole(t, c, "ns")
	isFound(t, c, "ns")
	disown(t, c, sweep(t, c, "ns"))
	eventually(t, "whoever owned something owns it again", func() error {
		if diff := cmp.Diff(before, owners(sweep(t, c, "ns"))); diff != "" {
			return fmt.Errorf("owners (-before +now):\n%s", diff)
		}
		return nil
	})
}

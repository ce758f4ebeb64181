package slipway

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
)

// Object is an object with a part that a function of the reference validates.
type Object struct {
	Reader   client.Reader
	Old, New client.Object
}

// objects are those of a test's client that rules read, and the control plane of the object.
func objects(ctx context.Context, reader client.Reader, object []byte) (out []map[string]any) {
	if reader == nil {
		return nil
	}
	for _, list := range []client.ObjectList{
		&clusterv1.ClusterClassList{}, &clusterv1.ClusterList{}, &clusterv1.MachineDeploymentList{}, &clusterv1.MachinePoolList{},
		&controlplanev1.KubeadmControlPlaneList{}, &ipamv1.IPAddressClaimList{},
	} {
		if err := reader.List(ctx, list); err != nil {
			continue // the test's client does not know the kind
		}
		items, err := meta.ExtractList(list)
		must(err)
		for _, item := range items {
			o := content(item.(client.Object))
			delete(o["metadata"].(map[string]any), "resourceVersion")
			out = append(out, o)
		}
	}
	return append(out, controlPlane(ctx, reader, object)...)
}

// unreadable are names of ClusterClasses that a test's client fails to read.
func unreadable(ctx context.Context, reader client.Reader) (out []string) {
	list := &clusterv1.ClusterClassList{}
	if reader == nil || reader.List(ctx, list) != nil {
		return nil
	}
	for _, class := range list.Items {
		if _, ok := reader.(client.Client); !ok {
			continue // a reader of the shim
		}
		if err := reader.Get(ctx, client.ObjectKeyFromObject(&class), &clusterv1.ClusterClass{}); err != nil {
			out = append(out, class.Name)
		}
	}
	return out
}

// controlPlane is that of a Cluster, with a CRD that declares its contract.
func controlPlane(ctx context.Context, reader client.Reader, object []byte) []map[string]any {
	var cluster clusterv1.Cluster
	if json.Unmarshal(object, &cluster) != nil || cluster.Kind != "Cluster" || !cluster.Spec.ControlPlaneRef.IsDefined() {
		return nil
	}
	ref := cluster.Spec.ControlPlaneRef
	plane := &unstructured.Unstructured{}
	plane.SetGroupVersionKind(schema.GroupVersionKind{Group: ref.APIGroup, Version: clusterv1.GroupVersion.Version, Kind: ref.Kind})
	if err := reader.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: ref.Name}, plane); err != nil {
		return nil
	}
	plane.SetResourceVersion("")
	resource, _ := meta.UnsafeGuessKindToResource(plane.GroupVersionKind())
	crd := map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{
			"name":   resource.Resource + "." + resource.Group,
			"labels": map[string]any{"cluster.x-k8s.io/v1beta2": resource.Version},
		},
	}
	return []map[string]any{plane.Object, crd}
}

// Selecting is a class of which the only patch has a selector.
func Selecting(class *clusterv1.ClusterClass, selector clusterv1.PatchSelector) *clusterv1.ClusterClass {
	class = class.DeepCopy()
	class.Spec.Patches = []clusterv1.ClusterClassPatch{{Name: "patch", Definitions: []clusterv1.PatchDefinition{{
		Selector: selector, JSONPatches: []clusterv1.JSONPatch{{Op: "remove", Path: "/spec/template/spec/x"}},
	}}}}
	return class
}

// Using is a reader of a class that is reconciled and of Clusters, which use it from now on.
func Using(class *clusterv1.ClusterClass, clusters ...*clusterv1.Cluster) client.Reader {
	out := known{}
	if class == nil {
		class = &clusterv1.ClusterClass{}
		class.Namespace, class.Name = clusters[0].Namespace, "class"
	}
	class = class.DeepCopy()
	class.Generation, class.Status.ObservedGeneration = 1, 1
	meta.SetStatusCondition(&class.Status.Conditions, metav1.Condition{
		Type: clusterv1.ClusterClassVariablesReadyCondition, Status: metav1.ConditionTrue, Reason: clusterv1.ClusterClassVariablesReadyReason,
	})
	out.classes = append(out.classes, *class)
	for _, c := range clusters {
		c.Spec.Topology.ClassRef.Name = class.Name
		out.clusters = append(out.clusters, *c)
	}
	return out
}

// UsedBy is Using of a list.
func UsedBy(class *clusterv1.ClusterClass, clusters []clusterv1.Cluster) client.Reader {
	var out []*clusterv1.Cluster
	for i := range clusters {
		out = append(out, &clusters[i])
	}
	return Using(class, out...)
}

// known has classes and Clusters.
type known struct {
	client.Reader
	classes  []clusterv1.ClusterClass
	clusters []clusterv1.Cluster
}

func (k known) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch l := list.(type) {
	case *clusterv1.ClusterClassList:
		l.Items = k.classes
	case *clusterv1.ClusterList:
		l.Items = k.clusters
	}
	return nil
}

func (k known) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return &meta.NoKindMatchError{}
}

// Upgrade is for functions that validate whether a Cluster can get another version.
func Upgrade(ctx context.Context, reader client.Reader, cluster *clusterv1.Cluster, next string, reference error) error {
	cluster = cluster.DeepCopy()
	if cluster.Namespace == "" {
		cluster.Namespace = metav1.NamespaceDefault
	}
	key := cluster.GetClassKey()
	class := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	upgraded := cluster.DeepCopy()
	upgraded.Spec.Topology.Version = next
	var expected field.ErrorList
	if reference != nil {
		expected = append(expected, field.Forbidden(field.NewPath("spec", "topology", "version"), reference.Error()))
	}
	return Errors(Object{both{reader, Using(class)}, cluster, upgraded}, expected, "spec.topology.version").ToAggregate()
}

// both reads classes from one reader, and everything else from the other.
type both struct {
	client.Reader
	classes client.Reader
}

func (b both) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(*clusterv1.ClusterClassList); ok {
		return b.classes.List(ctx, list)
	}
	return b.Reader.List(ctx, list, opts...)
}

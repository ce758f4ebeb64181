package kube_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// live returns a client of an API server that has the kinds.
func live(t *testing.T, kinds ...string) client.Client {
	t.Helper()
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}}
	for _, crd := range all {
		for _, kind := range kinds {
			if crd.Spec.Names.Kind == kind {
				crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
				objects = append(objects, crd)
			}
		}
	}
	s := apiserver.Start(t, apiserver.Options{Objects: objects})
	deadline := time.Now().Add(time.Minute)
	for { // until discovery knows the kinds, too
		c, err := client.New(s.Config, client.Options{Scheme: scheme(t)})
		for _, kind := range kinds {
			if err == nil {
				_, err = c.RESTMapper().RESTMapping(clusterv1.GroupVersion.WithKind(kind).GroupKind(), clusterv1.GroupVersion.Version)
			}
		}
		if err == nil {
			return c
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func number(n int32) *int32 { return &n }

// Over a real API server, whose schemas refuse null.
func TestPartsGo(t *testing.T) {
	c := live(t, "Cluster", "MachineSet")
	t.Run("status", func(t *testing.T) { partsOfAStatusGo(t, c) })
	t.Run("object", func(t *testing.T) { partsOfAnObjectGo(t, c) })
}

// A part of a status that comes whole and goes whole, as that of a control plane does while its
// Cluster is deleted, does not end the writing of the status.
func partsOfAStatusGo(t *testing.T, c client.Client) { // CO-03
	ctx := context.Background()
	o := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}, Spec: clusterv1.ClusterSpec{
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "g.example", Kind: "K", Name: "n"},
	}}
	if err := c.Create(ctx, o); err != nil {
		t.Fatal(err)
	}
	whole := clusterv1.ClusterStatus{
		Phase:          "Provisioned",
		ControlPlane:   &clusterv1.ClusterControlPlaneStatus{DesiredReplicas: number(1), Versions: []clusterv1.StatusVersion{{Version: "v1.36.3", Replicas: 1}}},
		Workers:        &clusterv1.WorkersStatus{DesiredReplicas: number(3), Replicas: number(2)},
		FailureDomains: []clusterv1.FailureDomain{{Name: "a", ControlPlane: new(bool)}},
		Conditions:     []metav1.Condition{withCondition("Ready", "R")},
	}
	cases := []struct {
		reason string
		status clusterv1.ClusterStatus
	}{
		{"everything", whole},
		{"a part goes", clusterv1.ClusterStatus{Phase: "Deleting", Workers: whole.Workers, FailureDomains: whole.FailureDomains, Conditions: whole.Conditions}},
		{"everything again", whole},
		{"a field of a part goes, and all items of a list", clusterv1.ClusterStatus{Phase: "Deleting", Workers: &clusterv1.WorkersStatus{Replicas: number(0)},
			ControlPlane: &clusterv1.ClusterControlPlaneStatus{DesiredReplicas: number(1)}, Conditions: whole.Conditions}},
		{"all parts and lists go", clusterv1.ClusterStatus{Phase: "Deleting"}},
		{"everything comes back", whole},
		{"a part stays that says nothing", clusterv1.ClusterStatus{Phase: "Deleting", ControlPlane: &clusterv1.ClusterControlPlaneStatus{}, Workers: whole.Workers}},
		{"it still says nothing", clusterv1.ClusterStatus{Phase: "Failed", ControlPlane: &clusterv1.ClusterControlPlaneStatus{}, Workers: whole.Workers}},
	}
	for _, tc := range cases {
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		if err := kube.NewWriter(c, "test").ApplyStatus(ctx, o, tc.status); err != nil {
			t.Fatalf("%s: %v", tc.reason, err)
		}
		got := &clusterv1.Cluster{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), got); err != nil {
			t.Fatal(err)
		}
		for i := range got.Status.Conditions {
			got.Status.Conditions[i].LastTransitionTime = metav1.Unix(1e9, 0)
		}
		if diff := cmp.Diff(tc.status, got.Status); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}

// The same for what is said of an object besides its status.
func partsOfAnObjectGo(t *testing.T, c client.Client) { // MS-08, MS-09
	ctx := context.Background()
	w := kube.NewWriter(c, "test")
	set := func(spec map[string]any) *unstructured.Unstructured {
		template := map[string]any{"clusterName": "c", "bootstrap": map[string]any{"dataSecretName": "s"},
			"infrastructureRef": map[string]any{"apiGroup": "g.example", "kind": "K", "name": "n"}}
		for key, value := range spec {
			template[key] = value
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": clusterv1.GroupVersion.String(), "kind": "MachineSet", "metadata": map[string]any{"namespace": "ns", "name": "s"},
			"spec": map[string]any{"clusterName": "c", "selector": map[string]any{"matchLabels": map[string]any{"a": "b"}},
				"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}, "spec": template}},
		}}
	}
	with := set(map[string]any{"deletion": map[string]any{"nodeDrainTimeoutSeconds": int64(5)},
		"readinessGates": []any{map[string]any{"conditionType": "X"}}})
	if err := w.Apply(ctx, nil, with); err != nil {
		t.Fatal(err)
	}
	read := func() *clusterv1.MachineSet {
		o := &clusterv1.MachineSet{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: "ns", Name: "s"}, o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	if spec := read().Spec.Template.Spec; *spec.Deletion.NodeDrainTimeoutSeconds != 5 || len(spec.ReadinessGates) != 1 {
		t.Fatalf("%+v", spec)
	}
	if err := w.Apply(ctx, read(), set(nil)); err != nil {
		t.Fatal(err)
	}
	if spec := read().Spec.Template.Spec; spec.Deletion.NodeDrainTimeoutSeconds != nil || len(spec.ReadinessGates) != 0 {
		t.Errorf("%+v", spec)
	}
	if err := w.Apply(ctx, read(), set(map[string]any{"deletion": map[string]any{"nodeDrainTimeoutSeconds": int64(-1)}})); err == nil {
		t.Error("what is invalid stays so")
	}
}

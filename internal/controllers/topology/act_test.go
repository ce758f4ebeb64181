package topology

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/test/testkit"
)

// recorder records the writes of a client.
func recorder(writes *[]string) interceptor.Funcs {
	var mu sync.Mutex
	note := func(write string) {
		mu.Lock()
		defer mu.Unlock()
		*writes = append(*writes, write)
	}
	return interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			options := (&client.PatchOptions{}).ApplyOptions(opts)
			note(fmt.Sprintf("%s %s %v", o.GetObjectKind().GroupVersionKind().Kind, o.GetName(), options.DryRun))
			return c.Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			note("delete " + o.GetName())
			return c.Delete(ctx, o, opts...)
		},
	}
}

func valueAt(t *testing.T, o *unstructured.Unstructured, path ...string) any {
	t.Helper()
	value, _, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestCreation(t *testing.T) { // TP-01, TP-02, TP-03, TP-04, TP-07, TP-20
	w := newWorld(t, management(newCluster(), newClass()).WithReturnManagedFields().Build())
	w.settle()
	cluster := w.cluster()
	if cluster.Spec.InfrastructureRef.Kind != "Net" || cluster.Spec.ControlPlaneRef.Kind != "Plane" || cluster.Spec.ControlPlaneRef.APIGroup != "x" {
		t.Errorf("references %+v %+v", cluster.Spec.InfrastructureRef, cluster.Spec.ControlPlaneRef)
	}
	if got := w.condition(); got != "True ReconcileSucceeded" {
		t.Error(got)
	}
	names := w.names()
	if len(names) != 11 {
		t.Errorf("want 11 objects, got %v", names)
	}
	net := w.one("Net", "c-")
	if valueAt(t, net, "spec", "controlPlaneEndpoint") != nil || valueAt(t, net, "spec", "subnet") != "10.0.0.0/16" {
		t.Errorf("TP-07: an empty endpoint is left to the provider: %v", net.Object["spec"])
	}
	if owner := net.GetOwnerReferences(); len(owner) != 1 || owner[0].UID != "c-uid" || !*owner[0].Controller {
		t.Errorf("TP-03: it is the Cluster's from its creation: %v", owner)
	}
	plane := w.one("Plane", "c-")
	want := map[string]any{
		"version": "v1.36.3", "replicas": int64(3), "flags": map[string]any{"audit": "on"},
		"machineTemplate": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{clusterv1.ClusterNameLabel: "c", clusterv1.ClusterTopologyOwnedLabel: ""}},
			"spec": map[string]any{"infrastructureRef": map[string]any{
				"apiGroup": "x", "kind": "HostTemplate", "name": valueAt(t, plane, "spec", "machineTemplate", "spec", "infrastructureRef", "name"),
			}},
		},
	}
	if diff := cmp.Diff(want, plane.Object["spec"]); diff != "" {
		t.Errorf("control plane (-want +got):\n%s", diff)
	}
	md := w.one("MachineDeployment", "c-a-")
	if got := md.GetLabels(); got[clusterv1.ClusterTopologyMachineDeploymentNameLabel] != "a" || got["team"] != "class" {
		t.Errorf("labels %v", got)
	}
	w.one("MachineHealthCheck", md.GetName())
	w.one("MachineHealthCheck", plane.GetName())
}

func TestSteadyState(t *testing.T) { // TP-06: no write and no dry run
	var writes []string
	w := newWorld(t, counting(&writes).Build())
	w.settle()
	if len(writes) > 20 {
		t.Errorf("%d writes to create it: %v", len(writes), writes)
	}
	writes = nil
	w.change(func(c *clusterv1.Cluster) { c.Annotations["unrelated"] = "x" })
	w.settle()
	if len(writes) != 0 {
		t.Errorf("writes %v", writes)
	}
}

// The manager dies at each write of a creation, a rotation, and an upgrade with workers that go: the end is the same.
func TestEveryWriteFailsOnce(t *testing.T) { // TP-03, TP-08, TP-30
	var want []string
	testkit.FailEachWrite(t, func() *fake.ClientBuilder { return management(newCluster(), newClass()) }, func(t *testing.T, c client.WithWatch) {
		w := newWorld(t, c)
		w.settle()
		w.update(template("HostTemplate", "host", nil), func(o client.Object) {
			_ = unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, "large", "spec", "template", "spec", "size")
		})
		w.settle()
		w.change(func(c *clusterv1.Cluster) {
			c.Spec.Topology.Version = "v1.36.4"
			c.Spec.Topology.Workers.MachinePools = nil
		})
		w.settle()
		if got := w.names(); want == nil {
			want = got
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the end is another (-want +got):\n%s", diff)
		}
	})
}

func TestRotation(t *testing.T) { // TP-08
	var writes []string
	w := newWorld(t, counting(&writes).Build())
	w.settle()
	plane, md := w.one("Plane", ""), w.one("MachineDeployment", "")
	before := valueAt(t, plane, "spec", "machineTemplate", "spec", "infrastructureRef", "name")
	writes = nil
	w.update(template("HostTemplate", "host", nil), func(o client.Object) {
		_ = unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, "large", "spec", "template", "spec", "size")
	})
	w.settle()
	after := valueAt(t, w.one("Plane", ""), "spec", "machineTemplate", "spec", "infrastructureRef", "name")
	if before == after {
		t.Error("the control plane refers to the old template")
	}
	for _, name := range w.names() {
		if name == "HostTemplate "+before.(string) {
			t.Error("the old template of the control plane is still there")
		}
	}
	if w.one("MachineDeployment", "").GetName() != md.GetName() {
		t.Error("the MachineDeployment was replaced")
	}
	dry := 0
	for _, write := range writes {
		if len(write) > 5 && write[len(write)-5:] == "[All]" {
			dry++
		}
	}
	if dry != 2 {
		t.Errorf("TP-06: one dry run for each template that differs, got %d: %v", dry, writes)
	}
	t.Run("metadata changes in place", func(t *testing.T) {
		before := w.names()
		w.update(template("HostTemplate", "host", nil), func(o client.Object) { o.SetLabels(map[string]string{"new": "label"}) })
		w.settle()
		if diff := cmp.Diff(before, w.names()); diff != "" {
			t.Errorf("(-before +after):\n%s", diff)
		}
		if got := w.one("HostTemplate", after.(string)).GetLabels()["new"]; got != "label" {
			t.Error("the label is not on the template")
		}
	})
}

// A template that another client changes is replaced by one as the topology says, also a second time.
func TestDriftOfTemplate(t *testing.T) { // TP-05, TP-08
	w := newWorld(t, management(newCluster(), newClass()).WithReturnManagedFields().Build())
	w.settle()
	for n := range 3 {
		host := w.one("HostTemplate", "c-a-")
		w.update(host.DeepCopy(), func(o client.Object) {
			_ = unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, "other", "spec", "template", "spec", "size")
		})
		w.settle()
		next := w.one("HostTemplate", "c-a-")
		if next.GetName() == host.GetName() || valueAt(t, next, "spec", "template", "spec", "size") != "small" || w.condition() != "True ReconcileSucceeded" {
			t.Errorf("drift %d of %s: %v, %s", n, host.GetName(), next.Object, w.condition())
		}
	}
}

// A provider whose webhook refuses every change of a template, dry runs too, is no obstacle.
func TestRefusedDryRun(t *testing.T) { // TP-08
	refuse := interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		if len((&client.PatchOptions{}).ApplyOptions(opts).DryRun) > 0 {
			return apierrors.NewForbidden(schema.GroupResource{Group: "x", Resource: "hosttemplates"}, o.GetName(), errors.New("spec is immutable"))
		}
		return c.Patch(ctx, o, p, opts...)
	}}
	w := newWorld(t, management(newCluster(), newClass()).WithReturnManagedFields().WithInterceptorFuncs(refuse).Build())
	w.settle()
	before := w.one("HostTemplate", "c-a-").GetName()
	w.update(template("HostTemplate", "host", nil), func(o client.Object) {
		_ = unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, "large", "spec", "template", "spec", "size")
	})
	w.settle()
	if after := w.one("HostTemplate", "c-a-"); after.GetName() == before || w.condition() != "True ReconcileSucceeded" {
		t.Errorf("%s is still used: %s", before, w.condition())
	}
}

func TestDrift(t *testing.T) { // TP-05
	w := newWorld(t, management(newCluster(), newClass()).WithReturnManagedFields().Build())
	w.settle()
	md := &clusterv1.MachineDeployment{}
	md.Namespace, md.Name = "ns", w.one("MachineDeployment", "").GetName()
	for range 2 { // the same drift twice
		w.update(md, func(o client.Object) {
			d := o.(*clusterv1.MachineDeployment)
			d.Spec.Replicas, d.Spec.MachineNaming.Template = new(int32(7)), "{{ .random }}"
			d.Labels["team"], d.Labels["mine"] = "other", "yes"
		})
		w.settle()
		w.must(w.Get(context.Background(), client.ObjectKeyFromObject(md), md))
		if *md.Spec.Replicas != 2 || md.Labels["team"] != "class" {
			t.Errorf("what the topology sets is set again: %+v %v", *md.Spec.Replicas, md.Labels)
		}
		if md.Spec.MachineNaming.Template == "" || md.Labels["mine"] != "yes" {
			t.Error("what it does not set stays")
		}
	}
}

func TestWaits(t *testing.T) { // CC-05, TP-20
	notReconciled := newClass()
	notReconciled.Generation = 2
	broken := newClass()
	broken.Spec.Infrastructure.TemplateRef.Name = "missing"
	unknown := newClass()
	unknown.Spec.Workers.MachineDeployments = nil
	uninstalled := newClass()
	uninstalled.Spec.Infrastructure.TemplateRef.Kind = "OtherTemplate"
	for reason, tc := range map[string]struct {
		class *clusterv1.ClusterClass
		want  string
	}{
		"no class":              {nil, "False ClusterClassNotReconciled Waiting for ClusterClass ns/class to be created"},
		"a class that changed":  {notReconciled, "False ClusterClassNotReconciled Waiting for ClusterClass ns/class to be reconciled"},
		"a missing template":    {broken, "False ReconcileFailed NetTemplate missing, the infrastructure cluster of ClusterClass class, does not exist: create it"},
		"a worker class":        {unknown, "False ReconcileFailed MachineDeployment a is of class worker, which ClusterClass class does not have: correct spec.topology.workers of the Cluster, or add the class"},
		"a kind that is absent": {uninstalled, "False ReconcileFailed Kind OtherTemplate of group x is not installed; install the provider it belongs to (CRD othertemplates.x)"},
	} {
		t.Run(reason, func(t *testing.T) {
			objects := []client.Object{newCluster()}
			if tc.class != nil {
				objects = append(objects, tc.class)
			}
			w := newWorld(t, management(objects...).WithReturnManagedFields().Build())
			w.settle()
			if diff := cmp.Diff(tc.want, w.condition()); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
			if names := w.names(); len(names) != 0 {
				t.Errorf("created %v", names)
			}
		})
	}
}

// A paused Cluster is not touched, and its condition says why.
func TestPaused(t *testing.T) { // PA-01, TP-20
	w := newWorld(t, management(newCluster(), newClass()).WithReturnManagedFields().Build())
	w.settle()
	w.change(func(c *clusterv1.Cluster) { c.Spec.Paused = new(true) })
	w.settle()
	if diff := cmp.Diff("False Paused Cluster spec.paused is set to true", w.condition()); diff != "" {
		t.Errorf("condition (-want +got):\n%s", diff)
	}
	w.change(func(c *clusterv1.Cluster) { c.Spec.Paused = nil })
	w.settle()
	if got := w.condition(); strings.Contains(got, "Paused") {
		t.Errorf("condition after the pause: %s", got)
	}
}

// A Cluster that is being deleted is left to the Cluster controller.
func TestDeletion(t *testing.T) { // TP-34
	w := newWorld(t, management(newCluster(), newClass()).WithReturnManagedFields().Build())
	w.settle()
	before := w.names()
	w.must(w.Delete(t.Context(), w.cluster()))
	w.settle()
	if diff := cmp.Diff(before, w.names()); diff != "" {
		t.Errorf("objects (-before +after):\n%s", diff)
	}
	if got := w.condition(); !strings.HasPrefix(got, "False Deleting Cluster is deleting") || len(w.cluster().Finalizers) != 1 {
		t.Errorf("%s, finalizers %v", got, w.cluster().Finalizers)
	}
}

// What is not of the topology is not taken over, and not deleted.
func TestForeignObjects(t *testing.T) { // TP-02
	class := newClass()
	class.Spec.Infrastructure.Naming.Template = "{{ .cluster.name }}-net"
	foreign := template("Net", "c-net", nil)
	foreign.SetGroupVersionKind(foreign.GroupVersionKind().GroupVersion().WithKind("Net"))
	labelled := template("HostTemplate", "theirs", nil)
	labelled.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.ClusterTopologyOwnedLabel: ""})
	w := newWorld(t, management(newCluster(), class, foreign, labelled).WithReturnManagedFields().Build())
	for range 2 {
		if _, err := w.reconcile(); fault.KindOf(err) == fault.Bug {
			t.Fatal(err)
		}
	}
	if got := w.condition(); got != "False ReconcileFailed Net c-net exists and is not of the topology of Cluster c: rename or delete it" {
		t.Error(got)
	}
	w.must(w.Delete(t.Context(), foreign))
	w.settle()
	w.one("HostTemplate", "theirs")
}

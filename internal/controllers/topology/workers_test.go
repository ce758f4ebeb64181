package topology

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/topology/lifecycle"
)

// A worker that cannot be brought up to date holds up no other.
func TestOneWorkerFails(t *testing.T) {
	cluster := newCluster()
	cluster.Spec.Topology.Workers.MachineDeployments = append(cluster.Spec.Topology.Workers.MachineDeployments,
		clusterv1.MachineDeploymentTopology{Class: "worker", Name: "b"})
	refuse := interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		if o.GetObjectKind().GroupVersionKind().Kind == "MachineDeployment" && strings.HasPrefix(o.GetName(), "c-a-") {
			return fault.New(fault.Invalid, "Refused", "a webhook refuses it")
		}
		return c.Patch(ctx, o, p, opts...)
	}}
	w := newWorld(t, management(cluster, newClass()).WithReturnManagedFields().WithInterceptorFuncs(refuse).Build())
	for range 2 {
		_, err := w.reconcile()
		if fault.KindOf(err) == fault.Bug {
			t.Fatal(err)
		}
		w.identify()
	}
	w.one("MachineDeployment", "c-b-")
	w.one("MachinePool", "c-p-")
	if got := w.condition(); got != "False ReconcileFailed A webhook refuses it" {
		t.Error(got)
	}
}

// A worker that the topology has no more is deleted with its check; its templates stay while a MachineSet uses them.
func TestRemovedWorker(t *testing.T) { // TP-32
	w := newWorld(t, management(newCluster(), newClass()).WithReturnManagedFields().Build())
	w.settle()
	md := w.one("MachineDeployment", "")
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set", UID: "set-uid", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}}}
	set.Spec.ClusterName = "c"
	set.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: "x", Kind: "HostTemplate", Name: valueAt(t, md, "spec", "template", "spec", "infrastructureRef", "name").(string),
	}
	w.must(w.Create(t.Context(), set))
	w.change(func(c *clusterv1.Cluster) { c.Spec.Topology.Workers.MachineDeployments = nil })
	w.settle()
	for _, name := range w.names() {
		if strings.HasPrefix(name, "MachineDeployment ") || name == "MachineHealthCheck "+md.GetName() || strings.HasPrefix(name, "ConfigTemplate ") {
			t.Errorf("%s is left", name)
		}
	}
	w.one("HostTemplate", "c-a-")
	w.must(w.Delete(t.Context(), set))
	w.settle()
	if slices.ContainsFunc(w.names(), func(name string) bool { return strings.HasPrefix(name, "HostTemplate c-a-") }) {
		t.Error("the template is left although nothing uses it")
	}
}

// A worker that a person deletes is created again; one that is gone without a trace is waited for.
func TestDeletedWorker(t *testing.T) {
	w := newWorld(t, management(newCluster(), newClass()).WithReturnManagedFields().Build())
	w.settle()
	if got := w.cluster().Annotations[lifecycle.WorkersAnnotation]; got != "MachineDeployment/a,MachinePool/p" {
		t.Errorf("workers %q", got)
	}
	md := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: w.one("MachineDeployment", "").GetName()}}
	w.update(md, func(o client.Object) { o.SetFinalizers([]string{"test/hold"}) })
	w.must(w.Delete(t.Context(), md))
	w.settle()
	w.update(md, func(o client.Object) { o.SetFinalizers(nil) })
	w.settle()
	next := w.one("MachineDeployment", "")
	if next.GetName() == md.Name {
		t.Error("the name of one that was still being deleted was used")
	}
	w.must(w.Delete(t.Context(), &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: next.GetName()}}))
	w.settle()
	want := "False ReconcileFailed MachineDeployment a existed and does not any more: restore it, or remove it from the annotation " +
		lifecycle.WorkersAnnotation + " of the Cluster to have it created again"
	if got := w.condition(); got != want {
		t.Error(got)
	}
	w.change(func(c *clusterv1.Cluster) { delete(c.Annotations, lifecycle.WorkersAnnotation) })
	w.settle()
	w.one("MachineDeployment", "c-a-")
}

// Workers that others take the place of stay until those could be created.
func TestReplacedWorkersGoLast(t *testing.T) {
	refuse := false
	w := newWorld(t, management(newCluster(), newClass()).WithReturnManagedFields().WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if refuse && o.GetObjectKind().GroupVersionKind().Kind == "MachineDeployment" {
				return apierrors.NewInvalid(o.GetObjectKind().GroupVersionKind().GroupKind(), o.GetName(), nil)
			}
			return c.Patch(ctx, o, p, opts...)
		},
	}).Build())
	w.settle()
	first := w.one("MachineDeployment", "c-a-").GetName()
	w.change(func(c *clusterv1.Cluster) { c.Spec.Topology.Workers.MachineDeployments[0].Name = "b" })
	refuse = true
	for range 5 {
		if _, err := w.reconcile(); err != nil && !strings.Contains(err.Error(), "is invalid") {
			t.Fatal(err)
		}
	}
	w.one("MachineDeployment", first)
	refuse = false
	w.settle()
	if got := w.one("MachineDeployment", "").GetName(); !strings.HasPrefix(got, "c-b-") {
		t.Errorf("%s is left", got)
	}
}

// A Cluster that comes back from a backup before its workers does not create others in their place.
func TestRestoreInAnyOrder(t *testing.T) { // OR-01
	w := newWorld(t, management(newCluster(), newClass()).WithReturnManagedFields().Build())
	w.settle()
	before, specs := w.names(), w.specs()
	restored := append([]client.Object{w.cluster(), newClass()}, newTemplates()...)
	for _, o := range w.objects() {
		restored = append(restored, o.DeepCopyObject().(client.Object))
	}
	for _, o := range restored { // what a backup keeps
		o.SetUID(types.UID("new-" + string(o.GetUID())))
		o.SetOwnerReferences(nil)
		o.SetFinalizers(nil)
		o.SetResourceVersion("")
		o.SetManagedFields(nil)
		if c, ok := o.(*clusterv1.Cluster); ok {
			c.Status = clusterv1.ClusterStatus{}
		}
	}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		r.Shuffle(len(restored), func(i, j int) { restored[i], restored[j] = restored[j], restored[i] })
		empty := management().WithReturnManagedFields().Build()
		w := newWorld(t, empty)
		for _, o := range newTemplates() {
			w.must(w.Delete(t.Context(), o))
		}
		for _, o := range restored {
			w.must(client.IgnoreAlreadyExists(w.Create(t.Context(), o.DeepCopyObject().(client.Object)))) // as restores do
			for range 2 {
				if _, err := w.reconcile(); err != nil && fault.KindOf(err) != fault.Conflict {
					t.Fatal(err)
				}
			}
		}
		w.settle()
		if diff := cmp.Diff(before, w.names()); diff != "" {
			t.Fatalf("seed %d (-before +after):\n%s", seed, diff)
		}
		if diff := cmp.Diff(specs, w.specs()); diff != "" {
			t.Errorf("seed %d: what would replace Machines (-before +after):\n%s", seed, diff)
		}
		if got := w.condition(); got != "True ReconcileSucceeded" {
			t.Errorf("seed %d: %s", seed, got)
		}
	}
}

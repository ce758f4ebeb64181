package machine

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
	"github.com/slipwayhq/slipway/test/testkit"
)

func TestEveryWriteFailsOnce(t *testing.T) { // MA-01 to MA-06, MA-08, MA-10, MA-13, MA-25
	testkit.FailEachWrite(t, func() *fake.ClientBuilder { return world(bare(fresh())) }, func(t *testing.T, c client.WithWatch) {
		w := fakeWorkloads{client: workload().Build()}
		settle(t, c, w)
		got, n := &clusterv1.Machine{}, &corev1.Node{}
		if err := errors.Join(c.Get(context.Background(), key, got), w.client.Get(context.Background(), client.ObjectKey{Name: "n"}, n)); err != nil {
			t.Fatal(err)
		}
		set := condition.Set(got.Status.Conditions)
		if len(got.Finalizers) != 1 || got.Labels[clusterv1.ClusterNameLabel] != "c" || got.OwnerReferences[0].Kind != "Cluster" ||
			got.Spec.ProviderID != "x://1" || *got.Spec.Bootstrap.DataSecretName != "data" || got.Status.Phase != "Running" ||
			got.Status.NodeRef.Name != "n" || !set.IsTrue("Ready") || !set.IsTrue("Available") || !set.IsFalse("Paused") {
			t.Errorf("machine %+v", got)
		}
		if n.Annotations[clusterv1.MachineAnnotation] != "m" || len(n.Spec.Taints) > 0 {
			t.Errorf("node %+v", n)
		}
		for kind, name := range map[string]string{"FooMachine": "i", "FooConfig": "b"} {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(schema.GroupVersionKind{Group: name, Version: "v1", Kind: kind})
			if err := c.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: name}, u); err != nil {
				t.Fatal(err)
			}
			if owner := metav1.GetControllerOf(u); owner == nil || owner.Kind != "Machine" || len(u.GetOwnerReferences()) != 1 || u.GetLabels()[clusterv1.ClusterNameLabel] != "c" {
				t.Errorf("MA-06: %s: owners %v, labels %v", kind, u.GetOwnerReferences(), u.GetLabels())
			}
		}
	})
}

// TestEveryWriteToTheNodeFailsOnce does the same for the writes to the workload cluster.
func TestEveryWriteToTheNodeFailsOnce(t *testing.T) { // MA-13, MA-18
	patches := 0
	testkit.FailEachWrite(t, workload, func(t *testing.T, remoteClient client.WithWatch) {
		patches = 0
		counting := interceptor.NewClient(remoteClient, interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				patches++
				return c.Patch(ctx, o, p, opts...)
			},
		})
		c := world(bare(fresh())).WithReturnManagedFields().Build()
		settle(t, c, fakeWorkloads{client: counting})
		n := &corev1.Node{}
		if err := remoteClient.Get(context.Background(), client.ObjectKey{Name: "n"}, n); err != nil {
			t.Fatal(err)
		}
		if n.Annotations[clusterv1.MachineAnnotation] != "m" || len(n.Spec.Taints) > 0 {
			t.Errorf("node %+v", n)
		}
	})
	if patches != 1 {
		t.Errorf("%d patches of the Node, want one for labels, annotations and taint", patches)
	}
}

func TestDeletionWhileWritesFail(t *testing.T) { // MD-01, MD-14, MD-15, MD-16
	testkit.FailEachWrite(t, func() *fake.ClientBuilder {
		m := settled(deleted).Machine
		m.Generation, m.Finalizers = 0, []string{clusterv1.MachineFinalizer}
		return world(m)
	}, func(t *testing.T, c client.WithWatch) {
		w := fakeWorkloads{client: workload().Build()}
		settle(t, c, w)
		for name, gvk := range map[string]schema.GroupVersionKind{"i": {Group: "i", Version: "v1", Kind: "FooMachine"}, "b": {Group: "b", Version: "v1", Kind: "FooConfig"},
			"m": clusterv1.GroupVersion.WithKind("Machine")} {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(gvk)
			if err := c.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: name}, u); !apierrors.IsNotFound(err) {
				t.Errorf("%s still exists: %v", gvk.Kind, err)
			}
		}
		if err := w.client.Get(context.Background(), client.ObjectKey{Name: "n"}, &corev1.Node{}); !apierrors.IsNotFound(err) {
			t.Errorf("Node still exists: %v", err)
		}
	})
}

func TestFinalizerComesFirst(t *testing.T) { // MA-01, MA-02, MA-03
	c := world(bare(fresh())).WithReturnManagedFields().Build()
	_, r := newController(c, fakeWorkloads{client: workload().Build()})
	if _, err := r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	got := &clusterv1.Machine{}
	if err := c.Get(context.Background(), key, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{clusterv1.MachineFinalizer}, got.Finalizers); diff != "" || len(got.Status.Conditions) > 0 {
		t.Errorf("the first pass adds the finalizer, and acts on nothing: %+v", got)
	}
	if len(got.OwnerReferences) != 1 || got.Labels[clusterv1.ClusterNameLabel] != "c" {
		t.Errorf("what is known by then goes into the same write: %+v", got.ObjectMeta)
	}
}

func TestPaused(t *testing.T) { // PA-01
	m := bare(fresh())
	m.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	c := world(m).WithReturnManagedFields().Build()
	settle(t, c, fakeWorkloads{client: workload().Build()})
	got := &clusterv1.Machine{}
	if err := c.Get(context.Background(), key, got); err != nil {
		t.Fatal(err)
	}
	if len(got.Status.Conditions) != 1 || !condition.Set(got.Status.Conditions).IsTrue("Paused") || got.Spec.ProviderID != "" {
		t.Errorf("nothing but the Paused condition: %+v", got)
	}
}

func TestObjectOfAnotherMachine(t *testing.T) { // MA-06
	const theirs = "FooMachine i belongs to Machine other: refer to an object of its own in Machine m"
	taken := func(s *snapshot) {
		s.Infra.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: "other", UID: "other", Controller: ptr.To(true)}})
	}
	s := fresh(func(s *snapshot) { s.Infra, s.Bootstrap = infra(readyInfra), bootstrap(readyBootstrap) }, taken)
	p := decide(s)
	want := []string{"do: copy the results of bootstrap and infrastructure", "wait: " + theirs}
	if diff := cmp.Diff(want, texts(p)); diff != "" {
		t.Errorf("it is left alone (-want +got):\n%s", diff)
	}
	copyProviderFields(s, s.Machine)
	got := status(s, reconciler.Outcome{})
	if c := condition.Set(got.Conditions).Get("InfrastructureReady"); c.Status != "Unknown" || c.Message != theirs {
		t.Errorf("what a person has to do: %v", c)
	}
	if s.Machine.Spec.ProviderID != "" || got.Initialization.InfrastructureProvisioned != nil || len(got.Addresses) != 0 || got.ObservedGeneration != 0 {
		t.Errorf("something was taken over from another Machine's infrastructure: %+v %+v", s.Machine.Spec, got)
	}
	s = settled(deleted, noNode, func(s *snapshot) { s.Bootstrap = contract.BootstrapConfigView{} }, taken)
	if p := decide(s); !p.Idle() {
		t.Errorf("the other Machine's infrastructure is deleted: %v", texts(p))
	}
}

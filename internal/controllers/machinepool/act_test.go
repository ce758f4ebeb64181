package machinepool

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/test/testkit"
)

// fakeWorkloads is one workload cluster behind a fake client.
type fakeWorkloads struct{ client client.Client }

func (w fakeWorkloads) Client(context.Context, client.ObjectKey) (client.Client, error) {
	return w.client, nil
}

func (w fakeWorkloads) Watch(context.Context, client.ObjectKey, workload.WatchRequest) error {
	return nil
}

func (w fakeWorkloads) Nodes(ctx context.Context, _ client.ObjectKey, id string) ([]corev1.Node, error) {
	list := &corev1.NodeList{}
	err := w.client.List(ctx, list)
	var out []corev1.Node
	for _, n := range list.Items {
		if n.Spec.ProviderID == id {
			out = append(out, n)
		}
	}
	return out, err
}

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, corev1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	for _, gvk := range []schema.GroupVersionKind{{Group: "i", Version: "v1", Kind: "FooPool"}, {Group: "i", Version: "v1", Kind: "FooMachine"}, {Group: "b", Version: "v1", Kind: "FooConfig"}} {
		s.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
		gvk.Kind += "List"
		s.AddKnownTypeWithName(gvk, &unstructured.UnstructuredList{})
	}
	return s
}

func crd(name string) client.Object {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1"}}}
}

func foreign(text string) client.Object {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		panic(err)
	}
	return u
}

// world is a management cluster with a pool of two, provisioned, whose instances are represented by FooMachines.
func world() *fake.ClientBuilder {
	s := settled()
	s.Pool.OwnerReferences, s.Pool.Labels, s.Pool.Spec.ProviderIDList, s.Pool.Status.ObservedGeneration = nil, nil, nil, 0
	s.Pool.Spec.Template.Spec.Bootstrap.DataSecretName = nil
	s.Cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	objs := []client.Object{
		s.Pool, s.Cluster, crd("foopools.i"), crd("foomachines.i"), crd("fooconfigs.b"),
		foreign(`{apiVersion: b/v1, kind: FooConfig, metadata: {name: b, namespace: ns}, status: {dataSecretName: data, initialization: {dataSecretCreated: true}}}`),
		foreign(`{apiVersion: i/v1, kind: FooPool, metadata: {name: i, namespace: ns}, spec: {providerIDList: ["x://0", "x://1"]}, status: {ready: true, replicas: 2, infrastructureMachineKind: FooMachine}}`),
		foreign(`{apiVersion: i/v1, kind: FooMachine, metadata: {name: m0, namespace: ns, labels: {cluster.x-k8s.io/cluster-name: c, cluster.x-k8s.io/pool-name: p}}}`),
		foreign(`{apiVersion: i/v1, kind: FooMachine, metadata: {name: m1, namespace: ns, labels: {cluster.x-k8s.io/cluster-name: c, cluster.x-k8s.io/pool-name: p}}}`),
	}
	return indexed(&clusterv1.MachinePool{}, &clusterv1.Machine{}).WithObjects(objs...).
		WithStatusSubresource(&clusterv1.MachinePool{}, &clusterv1.Machine{})
}

// settle reconciles until a pass neither fails nor writes.
func settle(t *testing.T, c client.WithWatch) {
	t.Helper()
	n0, n1 := node("n0", "x://0"), node("n1", "x://1")
	ctl := &controller{client: c, live: c, refs: kube.NewReferences(c, nil), now: func() time.Time { return now },
		workloads: fakeWorkloads{fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(&n0, &n1).Build()}}
	r := &reconciler.Reconciler[*clusterv1.MachinePool, snapshot]{Controller: ctl.definition(), Client: c, Writer: kube.NewWriter(c, Name), Now: ctl.now}
	ctl.writer = r.Writer
	key := client.ObjectKey{Namespace: "ns", Name: "p"}
	quiet := 0
	for range 40 {
		before := fingerprint(t, c)
		_, err := r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
		if err != nil && !errors.Is(err, testkit.ErrInjected) && fault.KindOf(err) != fault.Conflict {
			t.Fatal(err)
		}
		if err == nil && fingerprint(t, c) == before {
			if quiet++; quiet == 2 {
				return
			}
		} else {
			quiet = 0
		}
	}
	t.Fatal("does not settle")
}

// fingerprint is the resource versions of what the controller writes.
func fingerprint(t *testing.T, c client.Client) string {
	t.Helper()
	pools, machines := &clusterv1.MachinePoolList{}, &clusterv1.MachineList{}
	if err := errors.Join(c.List(context.Background(), pools), c.List(context.Background(), machines)); err != nil {
		t.Fatal(err)
	}
	out := ""
	for _, p := range pools.Items {
		out += p.Name + p.ResourceVersion + " "
	}
	for _, m := range machines.Items {
		out += m.Name + m.ResourceVersion + " "
	}
	return out
}

func TestEveryWriteFailsOnce(t *testing.T) { // MP-01, MP-02, MP-04, MP-05, MP-07
	testkit.FailEachWrite(t, world, func(t *testing.T, c client.WithWatch) {
		settle(t, c)
		pool := &clusterv1.MachinePool{}
		if err := c.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: "p"}, pool); err != nil {
			t.Fatal(err)
		}
		if len(pool.Finalizers) != 1 || len(pool.OwnerReferences) != 1 || len(pool.Spec.ProviderIDList) != 2 ||
			text(pool.Spec.Template.Spec.Bootstrap.DataSecretName) != "data" || len(pool.Status.NodeRefs) != 2 {
			t.Errorf("pool %+v %+v %+v", pool.ObjectMeta, pool.Spec, pool.Status)
		}
		machines := &clusterv1.MachineList{}
		if err := c.List(context.Background(), machines); err != nil {
			t.Fatal(err)
		}
		for _, m := range machines.Items {
			if owner := metav1.GetControllerOf(&m); owner == nil || owner.Name != "p" || conditionOf(m, "UpToDate") == nil {
				t.Errorf("machine %s: owner %v, conditions %v", m.Name, owner, m.Status.Conditions)
			}
		}
		if len(machines.Items) != 2 {
			t.Errorf("%d Machines", len(machines.Items))
		}
	})
}

// indexed is a fake client with the index of these kinds by Cluster.
func indexed(kinds ...client.Object) *fake.ClientBuilder {
	return testkit.WithIndexes(fake.NewClientBuilder().WithScheme(newScheme()), func(i client.FieldIndexer) error {
		return watches.IndexByCluster(i, Name, kinds...)
	})
}

func TestDeletionWhileWritesFail(t *testing.T) { // MP-14
	testkit.FailEachWrite(t, func() *fake.ClientBuilder {
		s := settled(deleted)
		s.Pool.Finalizers = []string{clusterv1.MachinePoolFinalizer}
		return indexed(&clusterv1.Machine{}).WithStatusSubresource(&clusterv1.MachinePool{}).WithObjects(
			s.Pool, s.Cluster, crd("foopools.i"), crd("fooconfigs.b"),
			foreign(`{apiVersion: b/v1, kind: FooConfig, metadata: {name: b, namespace: ns}}`),
			foreign(`{apiVersion: i/v1, kind: FooPool, metadata: {name: i, namespace: ns}}`))
	}, func(t *testing.T, c client.WithWatch) {
		settle(t, c)
		for kind, gvk := range map[string]schema.GroupVersionKind{"b": {Group: "b", Version: "v1", Kind: "FooConfig"}, "i": {Group: "i", Version: "v1", Kind: "FooPool"},
			"p": clusterv1.GroupVersion.WithKind("MachinePool")} {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(gvk)
			if err := c.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: kind}, u); !apierrors.IsNotFound(err) {
				t.Errorf("%s still exists: %v", gvk.Kind, err)
			}
		}
	})
}

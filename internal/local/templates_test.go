package local

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/local/simulated"
	"github.com/slipwayhq/slipway/test/testhost"
	"github.com/slipwayhq/slipway/test/testkit"
)

func nodesOf(architecture string, backends backend.Set) backend.CapacityCalculator {
	return backend.CapacityCalculator{Host: backend.HostResources{Processors: 2, Memory: 24 << 30, Architecture: architecture}, Backends: backends}
}

func templates(c client.Client, nodes backend.CapacityCalculator, now func() time.Time) infrastructure.TemplateReconciler {
	return infrastructure.TemplateReconciler{Client: c, Writer: kube.NewWriter(c, templatesName), Now: now, New: newTemplate, Status: templateStatus(nodes)}
}

func TestTemplateStatus(t *testing.T) { // IM-10
	s := runtime.NewScheme()
	if err := infrav1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	o := &infrav1.LocalMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t", UID: "u"}}
	cl := fake.NewClientBuilder().WithScheme(s).WithObjects(o).WithStatusSubresource(o).WithReturnManagedFields().Build()
	c := templates(cl, nodesOf("amd64", testhost.New().Set()), time.Now)
	version := ""
	for range 3 {
		if _, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)}); err != nil {
			t.Fatal(err)
		}
		if err := cl.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		if version != "" && version != o.ResourceVersion {
			t.Error("a status that is right is not written again")
		}
		version = o.ResourceVersion
	}
	if got := o.Status; got.Capacity.Cpu().String() != "2" || got.Capacity.Memory().String() != "24476Mi" || got.Capacity.Pods().String() != "110" ||
		got.NodeInfo != (infrav1.NodeInfo{Architecture: "amd64", OperatingSystem: "linux"}) {
		t.Errorf("got %+v", got)
	}
	if _, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "gone"}}); err != nil {
		t.Errorf("a template that is gone is no error; got %v", err)
	}
}

// A node of the simulated backend offers what that says, not what the host has; a write that fails is made again.
func TestSimulatedCapacityWhileWritesFail(t *testing.T) { // IM-10, AS-01
	s := runtime.NewScheme()
	if err := infrav1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	o := &infrav1.LocalMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t", UID: "u"}}
	o.Spec.Template.Spec.Backend.Simulated = &infrav1.SimulatedMachine{}
	build := func() *fake.ClientBuilder {
		return fake.NewClientBuilder().WithScheme(s).WithObjects(o.DeepCopy()).WithStatusSubresource(o)
	}
	testkit.FailEachWrite(t, build, func(t *testing.T, cl client.WithWatch) {
		c := templates(cl, nodesOf("arm64", backend.Set{infrav1.SimulatedBackend: simulated.New(nil, nil, time.Now)}), time.Now)
		for range 2 {
			if _, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)}); err != nil && !errors.Is(err, testkit.ErrInjected) {
				t.Fatal(err)
			}
		}
		got := &infrav1.LocalMachineTemplate{}
		if err := cl.Get(t.Context(), client.ObjectKeyFromObject(o), got); err != nil {
			t.Fatal(err)
		}
		want := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("16Gi")}
		if !got.Status.Capacity.Cpu().Equal(*want.Cpu()) || !got.Status.Capacity.Memory().Equal(*want.Memory()) || got.Status.NodeInfo.Architecture != "arm64" {
			t.Errorf("got %+v, want capacity %v", got.Status, want)
		}
	})
}

// The status of a new template waits until someone owns it, but not for ever.
func TestOwnedFirst(t *testing.T) { // IM-10
	s := runtime.NewScheme()
	if err := infrav1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	born := time.Unix(1e9, 0)
	owner := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Cluster", Name: "c", UID: "c"}}
	for name, tc := range map[string]struct {
		owners  []metav1.OwnerReference
		age     time.Duration
		written bool
		again   time.Duration
	}{
		"new":              {age: 3 * time.Second, again: 7 * time.Second},
		"of a clock ahead": {age: -time.Hour, again: 10 * time.Second},
		"owned":            {owners: owner, written: true},
		"nobody's":         {age: 10 * time.Second, written: true},
	} {
		o := &infrav1.LocalMachineTemplate{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "t", UID: "u", CreationTimestamp: metav1.NewTime(born), OwnerReferences: tc.owners,
		}}
		cl := fake.NewClientBuilder().WithScheme(s).WithObjects(o).WithStatusSubresource(o).WithReturnManagedFields().Build()
		c := templates(cl, nodesOf("amd64", testhost.New().Set()), func() time.Time { return born.Add(tc.age) })
		result, err := c.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)})
		if err != nil || result.RequeueAfter != tc.again {
			t.Errorf("%s: again in %s, %v; want %s", name, result.RequeueAfter, err, tc.again)
		}
		if err := cl.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil || (len(o.Status.Capacity) > 0) != tc.written {
			t.Errorf("%s: status %+v, %v", name, o.Status, err)
		}
	}
}

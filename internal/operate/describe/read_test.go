package describe_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/test/testkit"
)

// localKinds returns the kinds of Cluster API and of the Local provider.
func localKinds(t *testing.T) (*runtime.Scheme, apimeta.RESTMapper) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, addonsv1.AddToScheme, localv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	mapper := apimeta.NewDefaultRESTMapper([]schema.GroupVersion{clusterv1.GroupVersion, addonsv1.GroupVersion, localv1.GroupVersion})
	for kind := range scheme.AllKnownTypes() {
		mapper.Add(kind, apimeta.RESTScopeNamespace)
	}
	return scheme, mapper
}

// CX-09: what belongs to the cluster is found by references, labels and clusterName; nothing else is.
func TestRead(t *testing.T) {
	scheme, mapper := localKinds(t)
	local := clusterv1.ContractVersionedObjectReference{APIGroup: localv1.GroupVersion.Group}
	refTo := func(kind, name string) clusterv1.ContractVersionedObjectReference {
		r := local
		r.Kind, r.Name = kind, name
		return r
	}
	at := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	mine := func(name string) metav1.ObjectMeta {
		m := at(name)
		m.Labels = map[string]string{clusterv1.ClusterNameLabel: "demo"}
		return m
	}
	pool := func(m metav1.ObjectMeta, cluster string) *clusterv1.MachinePool {
		p := &clusterv1.MachinePool{ObjectMeta: m}
		p.Spec.ClusterName = cluster
		p.Spec.Template.Spec.InfrastructureRef = refTo("LocalMachinePool", m.Name)
		return p
	}
	selecting := func(name, network string) *addonsv1.ClusterResourceSet {
		set := &addonsv1.ClusterResourceSet{ObjectMeta: at(name)}
		set.Spec.ClusterSelector.MatchLabels = map[string]string{"network": network}
		return set
	}
	objects := []client.Object{
		&clusterv1.Cluster{ObjectMeta: at("typo"), Spec: clusterv1.ClusterSpec{InfrastructureRef: refTo("Localcluster", "typo")}},
		&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo", Labels: map[string]string{"network": "flannel"}}, Spec: clusterv1.ClusterSpec{
			InfrastructureRef: refTo("LocalCluster", "demo"),
			ControlPlaneRef:   clusterv1.ContractVersionedObjectReference{APIGroup: "nobody.example.com", Kind: "Plane", Name: "demo"},
		}},
		&localv1.LocalCluster{ObjectMeta: at("demo")},
		pool(at("new"), "demo"), pool(mine("old"), "demo"), pool(at("other"), "other"),
		&localv1.LocalMachinePool{ObjectMeta: mine("old")},
		&clusterv1.Machine{ObjectMeta: mine("m"), Spec: clusterv1.MachineSpec{InfrastructureRef: refTo("LocalMachine", "m")}},
		&clusterv1.Machine{ObjectMeta: at("stranger")},
		&localv1.LocalMachine{ObjectMeta: mine("m")},
		&localv1.LocalMachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "new"}},
		&addonsv1.ClusterResourceSetBinding{ObjectMeta: at("demo"), Spec: addonsv1.ClusterResourceSetBindingSpec{
			Bindings: []addonsv1.ResourceSetBinding{{ClusterResourceSetName: "storage"}}}},
		selecting("network", "flannel"), selecting("elsewhere", "other"), selecting("storage", "flannel"),
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).
		WithIndex(&localv1.LocalMachinePool{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} }).Build()
	got, err := describe.Read(t.Context(), c, client.ObjectKey{Namespace: "default", Name: "demo"}, describe.Options{ShowResourceSets: true})
	if err != nil {
		t.Fatal(err)
	}
	var pools []string
	for _, p := range got.Pools {
		pools = append(pools, p.Name)
	}
	if d := cmp.Diff([]string{"new", "old"}, pools); d != "" {
		t.Errorf("pools (-want +got):\n%s", d)
	}
	if len(got.Machines) != 1 || got.Machines[0].Name != "m" {
		t.Errorf("machines: %v", got.Machines)
	}
	if d := cmp.Diff([]string{"network", "storage"}, got.ResourceSets); d != "" {
		t.Errorf("resource sets (-want +got):\n%s", d)
	}
	group := localv1.GroupVersion.Group
	for _, ref := range []describe.Ref{{Group: group, Kind: "LocalCluster", Name: "demo"}, {Group: group, Kind: "LocalMachinePool", Name: "old"}, {Group: group, Kind: "LocalMachine", Name: "m"}} {
		if got.Objects[ref] == nil {
			t.Errorf("%+v was not found", ref)
		}
	}
	want := map[describe.Ref]string{
		{Group: group, Kind: "LocalMachinePool", Name: "new"}:      "does not exist here; there is one in namespace team-a",
		{Group: "nobody.example.com", Kind: "Plane", Name: "demo"}: "the kind Plane.nobody.example.com is not installed in the management cluster: install its provider",
	}
	if d := cmp.Diff(want, got.Missing); d != "" {
		t.Errorf("missing (-want +got):\n%s", d)
	}
	got, err = describe.Read(t.Context(), c, client.ObjectKey{Namespace: "default", Name: "typo"}, describe.Options{})
	if said := got.Missing[describe.Ref{Group: group, Kind: "Localcluster", Name: "typo"}]; err != nil || said != "group "+group+" has no kind Localcluster; did you mean LocalCluster?" {
		t.Errorf("a kind in the wrong case: %v %q", err, said)
	}
}

// A failed read is returned, and the other objects are read. Only the Cluster is required.
func TestReadAvailable(t *testing.T) {
	scheme, mapper := localKinds(t)
	at := metav1.ObjectMeta{Namespace: "default", Name: "demo"}
	cluster := &clusterv1.Cluster{ObjectMeta: at}
	cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: localv1.GroupVersion.Group, Kind: "LocalCluster", Name: "demo"}
	machine := &clusterv1.Machine{ObjectMeta: at}
	machine.Labels, machine.Spec.ClusterName = map[string]string{clusterv1.ClusterNameLabel: "demo"}, "demo"
	machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: localv1.GroupVersion.Group, Kind: "LocalMachine", Name: "demo"}
	local := &localv1.LocalMachine{ObjectMeta: at}
	for failing, want := range map[string]struct {
		errors               int
		machines             int
		unread, localMachine bool
	}{
		"MachinePoolList":        {errors: 1, machines: 1, localMachine: true},
		"MachineList":            {errors: 1},
		"MachineHealthCheckList": {errors: 1, machines: 1, localMachine: true},
		"LocalMachineList":       {errors: 1, machines: 1, unread: true},
		"LocalMachine":           {errors: 1, machines: 1, unread: true},
		"none":                   {machines: 1, localMachine: true},
	} {
		fails := func(o runtime.Object) error {
			if gvk, err := apiutil.GVKForObject(o, scheme); err != nil || gvk.Kind != failing {
				return err
			}
			return errors.New(failing + " fails")
		}
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster, machine, local).WithRESTMapper(mapper).WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
				if err := fails(list); err != nil {
					return err
				}
				return c.List(ctx, list, o...)
			},
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
				if err := fails(obj); err != nil {
					return err
				}
				return c.Get(ctx, key, obj, o...)
			},
		}).Build()
		got, err := describe.ReadAvailable(t.Context(), c, client.ObjectKeyFromObject(cluster), describe.Options{})
		ref := describe.Ref{Group: localv1.GroupVersion.Group, Kind: "LocalMachine", Name: "demo"}
		if n := strings.Count(fmt.Sprint(err), "fails"); n != want.errors || len(got.Machines) != want.machines || got.Unread[ref] != want.unread || (got.Objects[ref] != nil) != want.localMachine {
			t.Errorf("%s: %v; %d Machines, not read: %v, read: %v", failing, err, len(got.Machines), got.Unread, got.Objects)
		}
		if failing != "none" {
			if _, err := describe.Read(t.Context(), c, client.ObjectKeyFromObject(cluster), describe.Options{}); err == nil {
				t.Errorf("%s: Read does not return the error", failing)
			}
		}
	}
}

// Objects of the older contract are read in the form they have.
func TestConditionsOf(t *testing.T) {
	older := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "Zeta", "status": "True"},
		map[string]any{"type": "Ready", "status": "False", "severity": "Error", "reason": "Broken"},
		"nonsense",
	}}}}
	want := []describe.Condition{{Type: "Ready", Status: "False", Severity: "Error", Reason: "Broken"}, {Type: "Zeta", Status: "True"}}
	if d := cmp.Diff(want, describe.ConditionsOf(older)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// LH-17: which handler holds back the topology, since when, and when it is called again.
func TestHooksThatBlock(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, addonsv1.AddToScheme, eventsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo", UID: "u"}}
	cluster.Status.Conditions = []metav1.Condition{{Type: "TopologyReconciled", Status: "False", Reason: "ClusterUpgrading"}}
	event := func(name, uid, reason, note string, minutes, last int) *eventsv1.Event {
		e := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Reason: reason, Note: note, Regarding: corev1.ObjectReference{UID: types.UID(uid)}}
		e.EventTime = metav1.NewMicroTime(now().Add(-time.Duration(minutes) * time.Minute))
		if last != minutes {
			e.Series = &eventsv1.EventSeries{Count: 2, LastObservedTime: metav1.NewMicroTime(now().Add(-time.Duration(last) * time.Minute))}
		}
		return e
	}
	c := fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&eventsv1.Event{}, "regarding.uid", func(o client.Object) []string { return []string{string(o.(*eventsv1.Event).Regarding.UID)} }).
		WithObjects(cluster,
			event("1", "u", "HookBlocking", "over", 60, 60), event("2", "u", "HookCompleted", "Hook A completed by handlers: h.x", 50, 50),
			event("3", "u", "HookBlocking", "Hook B: handler h.x: no window; it blocks the upgrade of the Cluster to v1.36.0 and is called again in 30s", 55, 2),
			event("4", "another", "HookBlocking", "another", 1, 1), event("5", "u", "TopologyUpdate", "x", 1, 1)).Build()
	s, err := describe.Read(t.Context(), c, client.ObjectKeyFromObject(cluster), describe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	testkit.CompareGolden(t, "testdata/hooks.txt", describe.Render(describe.Build(s, describe.Options{}), describe.Style{Now: now(), Unicode: true}))
	cluster.Status.Conditions[0].Message = "Cluster is deleting. Following hooks are blocking deletion: C: handler h.x"
	update := func() {
		if err := c.Status().Update(t.Context(), cluster); err != nil {
			if err = c.Update(t.Context(), cluster); err != nil {
				t.Fatal(err)
			}
		}
	}
	update()
	if s, err = describe.Read(t.Context(), c, client.ObjectKeyFromObject(cluster), describe.Options{}); err != nil || len(s.Hooks) > 0 {
		t.Errorf("a hook that is not called any more: %v, %v", s.Hooks, err)
	}
	cluster.Status.Conditions[0].Status = "True"
	update()
	if s, err = describe.Read(t.Context(), c, client.ObjectKeyFromObject(cluster), describe.Options{}); err != nil || len(s.Hooks) > 0 {
		t.Errorf("a reconciled topology: %v, %v", s.Hooks, err)
	}
}

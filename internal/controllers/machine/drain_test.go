package machine

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/test/testkit"
)

// leavingMachine is a Machine that is deleted, as an API server has it.
func leavingMachine(changes ...func(*snapshot)) *clusterv1.Machine {
	m := settled(append([]func(*snapshot){deleted}, changes...)...).Machine
	m.Generation, m.Finalizers = 0, []string{clusterv1.MachineFinalizer}
	return m
}

// busy is the workload cluster with Pods on its Node, and a Pod elsewhere.
func busy() *fake.ClientBuilder {
	a, b, elsewhere := aPod("a"), aPod("b"), aPod("elsewhere")
	a.Spec.NodeName, b.Spec.NodeName, elsewhere.Spec.NodeName = "n", "n", "other"
	return workloadOf(node(), &a, &b, &elsewhere)
}

func TestDrainWhileWritesFail(t *testing.T) { // MD-04, MD-15, MD-16
	testkit.FailEachWrite(t, busy, func(t *testing.T, workload client.WithWatch) {
		c := world(leavingMachine()).WithReturnManagedFields().Build()
		settle(t, c, fakeWorkloads{client: workload})
		pods := &corev1.PodList{}
		if err := workload.List(t.Context(), pods); err != nil || len(pods.Items) != 1 || pods.Items[0].Name != "elsewhere" {
			t.Errorf("the Pods of the Node, and no others, have to go: %v, %v", pods.Items, err)
		}
		if err := workload.Get(t.Context(), client.ObjectKey{Name: "n"}, &corev1.Node{}); !apierrors.IsNotFound(err) {
			t.Errorf("Node still exists: %v", err)
		}
		if err := c.Get(t.Context(), key, &clusterv1.Machine{}); !apierrors.IsNotFound(err) {
			t.Errorf("Machine still exists: %v", err)
		}
	})
}

func TestManagementWritesFailDuringDrain(t *testing.T) { // MD-02 to MD-16
	testkit.FailEachWrite(t, func() *fake.ClientBuilder { return world(leavingMachine()) }, func(t *testing.T, c client.WithWatch) {
		w := fakeWorkloads{client: busy().Build()}
		settle(t, c, w)
		if err := c.Get(t.Context(), key, &clusterv1.Machine{}); !apierrors.IsNotFound(err) {
			t.Errorf("Machine still exists: %v", err)
		}
	})
}

// read returns the Machine and its condition Deleting.
func read(t *testing.T, c client.Client) (*clusterv1.Machine, metav1.Condition) {
	t.Helper()
	m := &clusterv1.Machine{}
	if err := c.Get(t.Context(), key, m); err != nil {
		t.Fatal(err)
	}
	d := condition.Set(m.Status.Conditions).Get(clusterv1.MachineDeletingCondition)
	if d == nil {
		t.Fatal("no condition Deleting")
	}
	return m, *d
}

func TestHooksHoldTheDeletion(t *testing.T) { // MD-02, MD-13
	m := leavingMachine(annotated(preDrainHook+"/a", preTerminateHook+"/b"))
	c := world(m).WithReturnManagedFields().Build()
	w := fakeWorkloads{client: busy().Build()}
	count := func() int {
		pods := &corev1.PodList{}
		if err := w.client.List(t.Context(), pods); err != nil {
			t.Fatal(err)
		}
		return len(pods.Items)
	}
	release := func(key string) {
		m, _ := read(t, c)
		delete(m.Annotations, key)
		if err := c.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		settle(t, c, w)
	}
	settle(t, c, w)
	if got, d := read(t, c); d.Reason != "WaitingForPreDrainHook" || got.Status.Deletion.WaitForPreDrainHookStartTime.IsZero() || count() != 3 {
		t.Errorf("MD-02: %s, %+v, %d Pods", d.Reason, got.Status.Deletion, count())
	}
	release(preDrainHook + "/a")
	if got, d := read(t, c); d.Reason != "WaitingForPreTerminateHook" || got.Status.Deletion.WaitForPreTerminateHookStartTime.IsZero() || count() != 1 {
		t.Errorf("MD-13: %s, %+v, %d Pods", d.Reason, got.Status.Deletion, count())
	}
	late := aPod("late")
	late.Spec.NodeName = "n"
	if err := w.client.Create(t.Context(), &late); err != nil {
		t.Fatal(err)
	}
	settle(t, c, w)
	if count() != 2 {
		t.Error("MD-13: drained again after the owners were told that the Node is drained")
	}
	release(preTerminateHook + "/b")
	if err := c.Get(t.Context(), key, &clusterv1.Machine{}); !apierrors.IsNotFound(err) {
		t.Errorf("MD-16: %v", err)
	}
}

func TestRuleOfTheNamespace(t *testing.T) { // MD-07
	rule := func(namespace string) client.Object {
		return &clusterv1.MachineDrainRule{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "r"}, Spec: clusterv1.MachineDrainRuleSpec{
			Drain: clusterv1.MachineDrainRuleDrainConfig{Behavior: clusterv1.MachineDrainRuleDrainBehaviorWaitCompleted}}}
	}
	for namespace, want := range map[string]string{"ns": "DrainingNode", "other": ""} {
		c := world(leavingMachine(), rule(namespace)).WithReturnManagedFields().Build()
		settle(t, c, fakeWorkloads{client: busy().Build()})
		if want == "" {
			if err := c.Get(t.Context(), key, &clusterv1.Machine{}); !apierrors.IsNotFound(err) {
				t.Errorf("a rule of another namespace is not for this Machine: %v", err)
			}
			continue
		}
		_, d := read(t, c)
		if diff := cmp.Diff("Draining Node n since 2026-01-02T03:04:05Z\n* Pods to complete by themselves: app/a, app/b", d.Message); d.Reason != want || diff != "" {
			t.Errorf("%s (-want +got):\n%s", d.Reason, diff)
		}
	}
}

func TestBadRuleIsSaid(t *testing.T) { // MD-07, MD-09
	bad := &clusterv1.MachineDrainRule{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r"}, Spec: clusterv1.MachineDrainRuleSpec{
		Drain: clusterv1.MachineDrainRuleDrainConfig{Behavior: clusterv1.MachineDrainRuleDrainBehaviorSkip},
		Pods: []clusterv1.MachineDrainRulePodSelector{{Selector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}}}}}
	c := world(leavingMachine(), bad).WithReturnManagedFields().Build()
	settle(t, c, fakeWorkloads{client: busy().Build()})
	if _, d := read(t, c); d.Message != "MachineDrainRule r has a selector that cannot be read: correct it or delete the rule" {
		t.Errorf("%s", d.Message)
	}
}

func TestVolumesHoldTheDeletion(t *testing.T) { // MD-12
	c := world(leavingMachine()).WithReturnManagedFields().Build()
	a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: storagev1.VolumeAttachmentSpec{
		NodeName: "n", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("pv")}}, Status: storagev1.VolumeAttachmentStatus{Attached: true}}
	w := fakeWorkloads{client: workloadOf(node(), a).Build()}
	ctl, r := newController(c, w)
	ctl.settings.VolumeAttachments = true
	for range 4 {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
	}
	if m, d := read(t, c); d.Reason != "WaitingForVolumeDetach" || m.Status.Deletion.WaitForNodeVolumeDetachStartTime.IsZero() {
		t.Errorf("%+v", d)
	}
	if err := w.client.Delete(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	if _, d := read(t, c); d.Reason != "WaitingForInfrastructureDeletion" {
		t.Errorf("%+v", d)
	}
}

func TestDownWhileAsked(t *testing.T) { // MD-03, RC-04
	c := world(leavingMachine()).Build()
	ctl, _ := newController(c, fakeWorkloads{down: true})
	s := settled(deleted, external, drained, func(s *snapshot) { s.Drain = nil })
	got, err := ctl.answer(t.Context(), s, askPods{Node: "n"})
	if err != nil || !got.Node.Unreachable {
		t.Errorf("a fact, not an error: %+v, %v", got.Node, err)
	}
}

// tally counts writes by verb and kind.
type tally map[string]int

func (n tally) add(verb string, o any, err error) error {
	kind := fmt.Sprintf("%T", o)
	switch o := o.(type) {
	case interface{ GetKind() string }:
		kind = o.GetKind()
	case *metav1.PartialObjectMetadata:
		kind = o.Kind
	}
	if err == nil {
		n[verb+" "+kind]++
	}
	return err
}

func (n tally) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return n.add("create", o, c.Create(ctx, o, opts...))
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return n.add("delete", o, c.Delete(ctx, o, opts...))
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return n.add("patch", o, c.Patch(ctx, o, p, opts...))
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			return n.add(sub, &clusterv1.Machine{}, c.SubResource(sub).Patch(ctx, o, p, opts...))
		},
	}
}

// TestWrites counts what a Machine costs while its providers do one step after the other.
func TestWrites(t *testing.T) { // MA-18
	n := tally{}
	s := fresh(ofPool, func(s *snapshot) { // made by someone who knows about finalizer and label
		s.Machine.Finalizers = []string{clusterv1.MachineFinalizer}
		s.Machine.Spec.Bootstrap = clusterv1.Bootstrap{ConfigRef: settled().Machine.Spec.Bootstrap.ConfigRef}
		s.Machine.Generation = 0
	})
	c := world(s.Machine).WithReturnManagedFields().WithInterceptorFuncs(n.funcs()).Build()
	nodes := workloadOf().WithInterceptorFuncs(n.funcs()).Build()
	w := fakeWorkloads{client: nodes}
	set := func(kind, name string, change func(map[string]any)) {
		t.Helper()
		u := foreign(fmt.Sprintf("apiVersion: %s/v1\nkind: %s\nmetadata: {name: %s, namespace: ns}", name, kind, name))
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
			t.Fatal(err)
		}
		content := u.(runtime.Unstructured).UnstructuredContent()
		change(content)
		u.(runtime.Unstructured).SetUnstructuredContent(content)
		if err := c.Update(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	set("FooMachine", "i", func(o map[string]any) { delete(o, "status"); delete(o, "spec") })
	set("FooConfig", "b", func(o map[string]any) { delete(o, "status") })
	settle(t, c, w)
	set("FooConfig", "b", func(o map[string]any) { o["status"] = bootstrap(readyBootstrap).Object.Unstructured.Object["status"] })
	settle(t, c, w)
	set("FooMachine", "i", func(o map[string]any) {
		ready := infra(readyInfra).Object.Unstructured.Object
		o["status"], o["spec"] = ready["status"], ready["spec"]
	})
	settle(t, c, w)
	if err := nodes.Create(t.Context(), node()); err != nil {
		t.Fatal(err)
	}
	settle(t, c, w)
	want := tally{"create *v1.Node": 1, // by the test
		"patch FooConfig": 1, "patch FooMachine": 1, // ownership
		"patch Machine":           2, // data secret, provider ID
		"patch Node":              1, // labels, annotations, taints
		"status *v1beta2.Machine": 4} // one for each step
	if diff := cmp.Diff(want, n); diff != "" {
		t.Errorf("until Running (-want +got):\n%s", diff)
	}
	clear(n)
	m := &clusterv1.Machine{}
	if err := errors.Join(c.Get(t.Context(), key, m), c.Delete(t.Context(), m)); err != nil {
		t.Fatal(err)
	}
	settle(t, c, w)
	want = tally{"delete *v1beta2.Machine": 1, // by the test
		"patch Node": 1, "delete *v1.Node": 1, // cordon
		"delete FooMachine": 1, "delete FooConfig": 1, "patch Machine": 1, // finalizer
		"status *v1beta2.Machine": 5} // drain, infrastructure, bootstrap, Node, over: at once; the driver's pace joins them
	if diff := cmp.Diff(want, n); diff != "" {
		t.Errorf("deletion (-want +got):\n%s", diff)
	}
}

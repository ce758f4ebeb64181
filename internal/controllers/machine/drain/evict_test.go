package drain

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func because(err *apierrors.StatusError, cause metav1.CauseType, message string) error {
	if err.ErrStatus.Details == nil {
		err.ErrStatus.Details = &metav1.StatusDetails{}
	}
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: cause, Message: message})
	return err
}

func TestEvict(t *testing.T) { // MD-04, MD-10
	pods := schema.GroupResource{Resource: "pods"}
	budget := because(apierrors.NewTooManyRequests("no", 0), policyv1.DisruptionBudgetCause, "web needs 2 healthy pods and has 2 currently")
	answers := map[string]error{
		"ok": nil, "gone": apierrors.NewNotFound(pods, "gone"), "replaced": apierrors.NewConflict(pods, "replaced", errors.New("uid")),
		"budget": budget, "busy": apierrors.NewTooManyRequests("later", 1),
		"terminating": because(apierrors.NewForbidden(pods, "terminating", errors.New("x")), corev1.NamespaceTerminatingCause, "x"),
		"refused":     apierrors.NewForbidden(pods, "refused", errors.New("no right")), "silent": errors.New("connection refused"),
	}
	var seen *policyv1.Eviction
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		SubResourceCreate: func(_ context.Context, _ client.Client, sub string, o, eviction client.Object, _ ...client.SubResourceCreateOption) error {
			if sub != "eviction" {
				t.Errorf("subresource %s", sub)
			}
			seen = eviction.(*policyv1.Eviction)
			return answers[o.GetName()]
		},
	}).Build()
	var targets []Target
	for _, n := range []string{"ok", "gone", "replaced", "budget", "busy", "terminating", "refused", "silent"} {
		targets = append(targets, Target{Pod: name(n), UID: "u", GraceSeconds: ptr.To[int64](1)})
	}
	want := Results{Accepted: []types.NamespacedName{name("ok")}, Refused: []Refusal{
		{name("budget"), budgeted, "a PodDisruptionBudget does not allow it now: web needs 2 healthy pods and has 2 currently"},
		{name("busy"), busy, "the API server of the workload cluster throttles requests"},
		{name("terminating"), terminating, "their Namespace is being deleted, and takes them along"},
		{name("refused"), failed, `the eviction failed: pods "refused" is forbidden: no right`},
		{name("silent"), failed, "the API server of the workload cluster does not answer"},
	}}
	got := Evict(t.Context(), c, targets)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !got.Failures() || (Results{Refused: want.Refused[:3]}).Failures() {
		t.Error("a budget is no failure, what nobody expects is one")
	}
	if diff := cmp.Diff(&metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](1), Preconditions: &metav1.Preconditions{UID: ptr.To(types.UID("u"))}}, seen.DeleteOptions); diff != "" {
		t.Errorf("the Pod that was judged, and no other of its name (-want +got):\n%s", diff)
	}
}

func TestEvictDoesNotBlock(t *testing.T) { // MD-04
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		SubResourceCreate: func(ctx context.Context, _ client.Client, _ string, _, _ client.Object, _ ...client.SubResourceCreateOption) error {
			if limit, ok := ctx.Deadline(); !ok || limit.IsZero() {
				t.Error("an eviction without a time limit")
			}
			asked++
			cancel() // as the end of the budget does
			return nil
		},
	}).Build()
	got := Evict(ctx, c, []Target{{Pod: name("a")}, {Pod: name("b")}, {Pod: name("c")}})
	if diff := cmp.Diff(Results{Accepted: []types.NamespacedName{name("a")}, Left: []types.NamespacedName{name("b"), name("c")}}, got); diff != "" || asked != 1 {
		t.Errorf("the rest is left to another pass, %d were asked (-want +got):\n%s", asked, diff)
	}
}

func TestLook(t *testing.T) { // MD-05, MD-07
	onNode := func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }
	a, b, c, elsewhere := pod("a", ofDaemonSet("gone")), pod("b", ofDaemonSet("here")), pod("c"), pod("d")
	elsewhere.Spec.NodeName = "other"
	namespaces := 0
	workload := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithIndex(&corev1.Pod{}, nodeName, onNode).WithObjects(&a, &b, &c, &elsewhere,
		&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "here"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"team": "red"}}},
	).WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, ok := list.(*corev1.NamespaceList); ok {
			namespaces++
		}
		return c.List(ctx, list, opts...)
	}}).Build()
	plain := rules(t, rule("x", "x", "Skip", nil))
	v, err := ReadView(t.Context(), workload, node(corev1.ConditionTrue), plain)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(outline{Evict: []string{"a", "c"}, Stay: []string{"b"}}, outlineOf(Decide(v.At(now)))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if namespaces != 0 {
		t.Error("RC-07: Namespaces are listed where no rule asks for them")
	}
	byTeam := rules(t, teamRule())
	if v, err = ReadView(t.Context(), workload, node(corev1.ConditionTrue), byTeam); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(outline{Stay: []string{"a", "b", "c"}}, outlineOf(Decide(v.At(now)))); diff != "" {
		t.Errorf("by the labels of Namespaces (-want +got):\n%s", diff)
	}
}

func TestLookForVolumes(t *testing.T) { // MD-12
	on := func(name, node string, attached bool) *storagev1.VolumeAttachment {
		a := attachment(name, ptr.To("a"))
		a.Spec.NodeName, a.Status.Attached = node, attached
		return &a
	}
	pv := csi("a", "h", "")
	workload := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(on("1", "n", true), on("2", "n", false), on("3", "other", true), &pv).Build()
	v, err := ReadVolumes(t.Context(), workload, node(corev1.ConditionTrue), true)
	if err != nil || len(v.Attachments) != 1 || v.Attachments[0].Name != "1" || len(v.PersistentVolumes) != 1 {
		t.Errorf("attached to this Node: %+v, %v", v, err)
	}
	if v, err = ReadVolumes(t.Context(), workload, node(corev1.ConditionTrue), false); err != nil || !v.None() || len(v.PersistentVolumes) != 0 {
		t.Errorf("gate off, and the Node reports nothing: %+v, %v", v, err)
	}
}

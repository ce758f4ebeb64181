package simulated_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// kinds are what a workload cluster has to serve: the identity of the object "kept" of each.
func kinds(t *testing.T, c kubernetes.Interface) map[string]string {
	t.Helper()
	out := map[string]string{}
	add := func(kind string, o metav1.Object, err error) {
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			return
		}
		out[kind] = string(o.GetUID())
	}
	ctx, get := context.Background(), metav1.GetOptions{}
	node, err := c.CoreV1().Nodes().Get(ctx, "kept", get)
	add("Node", node, err)
	pod, err := c.CoreV1().Pods("default").Get(ctx, "kept", get)
	add("Pod", pod, err)
	lease, err := c.CoordinationV1().Leases("kube-node-lease").Get(ctx, "kept", get)
	add("Lease", lease, err)
	config, err := c.CoreV1().ConfigMaps("default").Get(ctx, "kept", get)
	add("ConfigMap", config, err)
	secret, err := c.CoreV1().Secrets("default").Get(ctx, "kept", get)
	add("Secret", secret, err)
	role, err := c.RbacV1().ClusterRoles().Get(ctx, "kept", get)
	add("ClusterRole", role, err)
	budget, err := c.PolicyV1().PodDisruptionBudgets("default").Get(ctx, "kept", get)
	add("PodDisruptionBudget", budget, err)
	return out
}

// fill creates the object "kept" of every kind, and waits until the Pod runs and its budget has been counted.
func fill(t *testing.T, c kubernetes.Interface) {
	t.Helper()
	ctx, create, kept := context.Background(), metav1.CreateOptions{}, metav1.ObjectMeta{Name: "kept"}
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	app, one := map[string]string{"app": "a"}, intstr.FromInt32(1)
	must(c.CoreV1().Nodes().Create(ctx, node("kept"), create))
	must(c.CoreV1().Pods("default").Create(ctx, pod("kept", "kept", app), create))
	must(c.CoordinationV1().Leases("kube-node-lease").Create(ctx, &coordinationv1.Lease{ObjectMeta: kept}, create))
	must(c.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: kept}, create))
	must(c.CoreV1().Secrets("default").Create(ctx, &corev1.Secret{ObjectMeta: kept, StringData: map[string]string{"k": "v"}}, create))
	must(c.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: kept}, create))
	must(c.PolicyV1().PodDisruptionBudgets("default").Create(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: kept,
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: app}}}, create))
	eventually(t, "the Pod is counted", func() bool {
		b, err := c.PolicyV1().PodDisruptionBudgets("default").Get(ctx, "kept", metav1.GetOptions{})
		return err == nil && b.Status.CurrentHealthy == 1
	})
}

// Everything that a workload cluster serves is there after a restart, and goes on: budgets hold, Pods end, watches tell.
func TestEveryKindSurvivesARestart(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, t.TempDir())
	admin := w.start(t, "one")
	spec, ca := w.Status("one").Spec, w.ca
	fill(t, clientOf(t, admin))
	before := kinds(t, clientOf(t, admin))
	w.end()
	w = newWorld(t, w.dir)
	w.ca = ca
	if err := w.Start("one", spec); err != nil {
		t.Fatal(err)
	}
	c := clientOf(t, admin)
	if diff := cmp.Diff(before, kinds(t, c)); diff != "" {
		t.Errorf("after the restart (-want +got):\n%s", diff)
	}
	evict := func() error {
		return c.CoreV1().Pods("default").EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kept"}})
	}
	if err := evict(); !apierrors.IsTooManyRequests(err) {
		t.Errorf("an eviction that the budget does not allow: %v", err)
	}
	list, err := c.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watching, err := c.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	if _, err := c.CoreV1().Pods("default").Create(ctx, pod("more", "kept", map[string]string{"app": "a"}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "with a second Pod the first may go", func() bool { return evict() == nil })
	for patience := time.After(30 * time.Second); ; {
		select {
		case e := <-watching.ResultChan():
			if p, ok := e.Object.(*corev1.Pod); ok && p.Name == "kept" && e.Type == watch.Deleted {
				return
			}
		case <-patience:
			t.Fatal("the watch does not tell that the Pod is gone")
		}
	}
}

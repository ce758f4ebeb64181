package simulated_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
)

func TestObjects(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, t.TempDir())
	c := clientOf(t, w.start(t, "one"))
	t0 := time.Now()
	if _, err := c.CoreV1().Nodes().Create(ctx, node("n1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Log("first create", time.Since(t0))

	maps := c.CoreV1().ConfigMaps("default")
	created, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "1"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watching, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: created.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	if _, err := maps.Create(ctx, created, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) && !apierrors.IsInvalid(err) {
		t.Errorf("the same again: %v", err)
	}
	patched, err := maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"k":"2"}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if patched.Data["k"] != "2" || patched.ResourceVersion == created.ResourceVersion {
		t.Errorf("patched: %v", patched)
	}
	created.Data["k"] = "3"
	if _, err := maps.Update(ctx, created, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update of what was read before a change: %v", err)
	}
	if _, err := maps.Apply(ctx, applycorev1.ConfigMap("a", "default").WithData(map[string]string{"k": "4"}), metav1.ApplyOptions{FieldManager: "m"}); !apierrors.IsConflict(err) {
		t.Errorf("applying a field that somebody else owns: %v", err)
	}
	if _, err := maps.Apply(ctx, applycorev1.ConfigMap("a", "default").WithData(map[string]string{"k": "4"}), metav1.ApplyOptions{FieldManager: "m", Force: true}); err != nil {
		t.Errorf("applying with force: %v", err)
	}
	if err := maps.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	var got []watch.EventType
	for e := range watching.ResultChan() {
		if got = append(got, e.Type); e.Type == watch.Deleted {
			break
		}
	}
	if len(got) != 3 || got[0] != watch.Modified || got[1] != watch.Modified {
		t.Errorf("the watch told %v", got)
	}
	if _, err := c.CoreV1().ConfigMaps("nowhere").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("in a namespace that does not exist: %v", err)
	}
}

func TestEviction(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, t.TempDir())
	c := clientOf(t, w.start(t, "one"))
	if _, err := c.CoreV1().Nodes().Create(ctx, node("n1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	app := map[string]string{"app": "a"}
	pods := c.CoreV1().Pods("default")
	for _, name := range []string{"p1", "p2"} {
		if _, err := pods.Create(ctx, pod(name, "n1", app), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	available := intstr.FromInt32(1)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: &available, Selector: &metav1.LabelSelector{MatchLabels: app},
	}}
	if _, err := c.PolicyV1().PodDisruptionBudgets("default").Create(ctx, budget, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "one disruption is allowed", func() bool {
		b, err := c.PolicyV1().PodDisruptionBudgets("default").Get(ctx, "b", metav1.GetOptions{})
		return err == nil && b.Status.DisruptionsAllowed == 1
	})
	evict := func(name string) error {
		return pods.EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}})
	}
	if err := evict("p1"); err != nil {
		t.Fatalf("the first: %v", err)
	}
	if err := evict("p2"); !apierrors.IsTooManyRequests(err) {
		t.Errorf("the second: %v, want 429", err)
	}
	eventually(t, "the evicted pod is gone", func() bool {
		_, err := pods.Get(ctx, "p1", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

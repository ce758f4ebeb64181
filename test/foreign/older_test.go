package foreign

import (
	"fmt"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1" //nolint:staticcheck // this is about those who still use it
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/testkit"
)

// patches is how often a provider of the older types writes.
const patches = 30

// olderStory has a program that was compiled with the types of v1beta1: it creates, lists from a cache, and writes conditions of
// both generations.
func (w *world) olderStory(f family) {
	w.up(f)
	scheme := runtime.NewScheme()
	w.must(clusterv1beta1.AddToScheme(scheme))
	watched, err := cache.New(w.server.Config, cache.Options{Scheme: scheme, DefaultNamespaces: map[string]cache.Config{w.namespace: {}}})
	w.must(err)
	testkit.RunBackground(w.T, watched.Start)
	older, err := client.New(w.server.Config, client.Options{Scheme: scheme})
	w.must(err)
	data, version := "data", "v1.36.3"
	m := &clusterv1beta1.Machine{ObjectMeta: w.meta("m"), Spec: clusterv1beta1.MachineSpec{
		ClusterName: "c", Version: &version, Bootstrap: clusterv1beta1.Bootstrap{DataSecretName: &data},
		InfrastructureRef: corev1.ObjectReference{APIVersion: f.machine.GroupVersion().String(), Kind: f.machine.Kind, Name: "m", Namespace: w.namespace},
		NodeDrainTimeout:  &metav1.Duration{Duration: 90e9},
	}}
	w.must(older.Create(w.Context(), m))
	w.create(f.machine.New(w.namespace, "m"))
	now := &clusterv1.Machine{ObjectMeta: w.meta("m")}
	w.saying(now, "Ready", "True")
	spec := now.Spec
	w.check("75 what is created and patched with older types loses nothing", func(w *world) {
		for i := range patches {
			w.patchOlder(older, m, i)
		}
		w.saying(now, "Ready", "True")
		w.saying(now, "NewerCondition", "True Patched")
		if diff := cmp.Diff(spec, now.Spec); diff != "" || now.Spec.Deletion.NodeDrainTimeoutSeconds == nil || *now.Spec.Deletion.NodeDrainTimeoutSeconds != 90 {
			w.Errorf("spec (-before +after): %s", diff)
		}
		for i := range patches {
			if now.Annotations[fmt.Sprintf("older/%d", i)] == "" {
				w.Errorf("annotation %d is lost", i)
			}
		}
	})
	w.check("75 a cached list of older types has the conditions of both generations", func(w *world) {
		w.eventually(now, func() string {
			found := w.olderConditions(watched)
			if !found["older OlderCondition"] {
				// A status that Slipway computed before the last patch may have replaced the list: a provider reconciles again then.
				w.patchOlder(older, m, patches)
			}
			return unless(found["older Ready"] && found["older OlderCondition"] && found["newer Ready"] && found["newer NewerCondition"], "conditions %v", found)
		})
	})
	w.check("75 conditions of other writers stay when Slipway writes its own", func(w *world) {
		w.must(w.Patch(w.Context(), now, client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"pre-drain.delete.hook.machine.cluster.x-k8s.io/story":""}}}`))))
		w.must(w.Delete(w.Context(), now))
		w.eventually(now, func() string {
			found := w.olderConditions(watched)
			_, written := found["older PreDrainDeleteHookSucceeded"]
			return unless(written && found["older OlderCondition"] && found["newer NewerCondition"], "conditions %v", found)
		})
		w.must(w.Patch(w.Context(), now, client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"pre-drain.delete.hook.machine.cluster.x-k8s.io/story":null}}}`))))
	})
}

// olderConditions returns the conditions of the one Machine in a cache of older types, and whether they are True.
func (w *world) olderConditions(watched client.Reader) map[string]bool {
	w.Helper()
	var list clusterv1beta1.MachineList
	w.must(watched.List(w.Context(), &list))
	found := map[string]bool{}
	for _, m := range list.Items {
		for _, c := range m.Status.Conditions {
			found["older "+string(c.Type)] = c.Status == corev1.ConditionTrue
		}
		if m.Status.V1Beta2 == nil {
			continue
		}
		for _, c := range m.Status.V1Beta2.Conditions {
			found["newer "+c.Type] = c.Status == metav1.ConditionTrue
		}
	}
	return found
}

// patchOlder does what a patch helper of the older types does: it reads, and writes what changed, again where something else wrote.
func (w *world) patchOlder(c client.Client, m *clusterv1beta1.Machine, i int) {
	w.Helper()
	for {
		w.must(c.Get(w.Context(), client.ObjectKeyFromObject(m), m))
		before := m.DeepCopy()
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, fmt.Sprintf("older/%d", i), "patched")
		w.must(c.Patch(w.Context(), m.DeepCopy(), client.MergeFrom(before)))
		w.must(c.Get(w.Context(), client.ObjectKeyFromObject(m), m))
		before = m.DeepCopy()
		m.Status.Conditions = append(withoutCondition(m.Status.Conditions, "OlderCondition"), clusterv1beta1.Condition{
			Type: "OlderCondition", Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(), Message: fmt.Sprint(i),
		})
		if m.Status.V1Beta2 == nil {
			m.Status.V1Beta2 = &clusterv1beta1.MachineV1Beta2Status{}
		}
		meta.SetStatusCondition(&m.Status.V1Beta2.Conditions, metav1.Condition{Type: "NewerCondition", Status: "True", Reason: "Patched", Message: fmt.Sprint(i)})
		err := c.Status().Patch(w.Context(), m.DeepCopy(), client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		if !apierrors.IsConflict(err) {
			w.must(err)
			return
		}
	}
}

func withoutCondition(list clusterv1beta1.Conditions, conditionType clusterv1beta1.ConditionType) clusterv1beta1.Conditions {
	var out clusterv1beta1.Conditions
	for _, c := range list {
		if c.Type != conditionType {
			out = append(out, c)
		}
	}
	return out
}

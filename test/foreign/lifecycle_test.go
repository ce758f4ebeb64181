package foreign

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/foreign/provider"
)

// hold keeps an object from going, and release lets it go.
func (w *world) hold(u *unstructured.Unstructured) {
	w.Helper()
	change(w, u, func(u *unstructured.Unstructured) { annotated(u, provider.Hold) })
}

func (w *world) release(u *unstructured.Unstructured) {
	w.Helper()
	change(w, u, func(u *unstructured.Unstructured) { u.SetAnnotations(nil) })
	w.gone(u)
}

// stays checks that an object was not deleted so far.
func (w *world) stays(u client.Object) {
	w.Helper()
	w.must(w.Get(w.Context(), client.ObjectKeyFromObject(u), u))
	if u.GetDeletionTimestamp() != nil {
		w.Errorf("%T %s is deleted too soon", u, u.GetName())
	}
}

// deletionStory deletes a Machine and a cluster whose provider takes its time.
func (w *world) deletionStory(f family) {
	p := w.up(f)
	m, infra, config := w.newMachine(f, "m"), f.machine.New(w.namespace, "m"), f.config.New(w.namespace, "m")
	m.Spec.Bootstrap = clusterv1.Bootstrap{ConfigRef: f.config.Ref("m")}
	last, lastInfra := w.newMachine(f, "last"), f.machine.New(w.namespace, "last")
	w.create(m, infra, config, last, lastInfra)
	w.saying(m, "Ready", "True")
	w.saying(last, "Ready", "True")
	w.check("65, 66 a Machine goes after its hooks, its infrastructure and its config, and its Node last", func(w *world) {
		const hook = clusterv1.PreDrainDeleteHookAnnotationPrefix + "/foreign"
		change(w, m, func(m *clusterv1.Machine) { m.Annotations = map[string]string{hook: "foreign"} })
		w.hold(infra)
		w.hold(config)
		node := w.node(m)
		w.must(w.Delete(w.Context(), m))
		w.saying(m, "Deleting", "True WaitingForPreDrainHook")
		w.stays(infra)
		change(w, m, func(m *clusterv1.Machine) { delete(m.Annotations, hook) })
		w.saying(m, "Deleting", "True WaitingForInfrastructureDeletion", f.machine.Kind)
		w.stays(config)
		w.stays(node)
		w.release(infra)
		w.saying(m, "Deleting", "True WaitingForBootstrapDeletion", f.config.Kind)
		w.release(config)
		w.gone(m, node)
	})
	w.check("64, 66 a cluster goes in order: workers, control plane, infrastructure", func(w *world) {
		for _, u := range []*unstructured.Unstructured{lastInfra, p.plane, p.infra} {
			w.hold(u)
		}
		w.must(w.Delete(w.Context(), p.Cluster))
		w.saying(p.Cluster, "Deleting", "True WaitingForWorkersDeletion", "last")
		w.stays(p.plane)
		w.release(lastInfra)
		w.saying(p.Cluster, "Deleting", "True WaitingForControlPlaneDeletion", p.plane.GetKind())
		w.stays(p.infra)
		w.release(p.plane)
		w.saying(p.Cluster, "Deleting", "True WaitingForInfrastructureDeletion", p.infra.GetKind())
		w.release(p.infra)
		w.gone(p.Cluster)
	})
}

// pauseStory pauses a cluster, a Machine, and an object of the provider.
func (w *world) pauseStory(f family) {
	p := w.up(f)
	yes := true
	m, infra := w.newMachine(f, "m"), f.machine.New(w.namespace, "m")
	other, otherInfra := w.newMachine(f, "other"), f.machine.New(w.namespace, "other")
	w.create(m, infra, other, otherInfra)
	w.saying(m, "Ready", "True")
	w.saying(other, "Ready", "True")
	w.check("62, 74 what belongs to a paused Cluster is left alone, and goes on afterwards", func(w *world) {
		change(w, p.Cluster, func(c *clusterv1.Cluster) { c.Spec.Paused = &yes })
		for _, o := range []conditioned{p.Cluster, m, other} {
			w.saying(o, "Paused", "True")
		}
		fresh, freshInfra := w.newMachine(f, "fresh"), f.machine.New(w.namespace, "fresh")
		w.create(fresh, freshInfra)
		w.must(w.Delete(w.Context(), m))
		w.saying(fresh, "Paused", "True")
		w.stays(infra)
		w.must(w.Get(w.Context(), client.ObjectKeyFromObject(freshInfra), freshInfra))
		if len(freshInfra.GetOwnerReferences()) > 0 {
			w.Error("a Machine of a paused Cluster is reconciled")
		}
		change(w, p.Cluster, func(c *clusterv1.Cluster) { c.Spec.Paused = nil })
		w.saying(fresh, "Ready", "True")
		w.gone(m, infra)
	})
	w.check("63 the annotation pauses one object", func(w *world) {
		change(w, other, func(m *clusterv1.Machine) { m.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} })
		w.saying(other, "Paused", "True")
		w.must(w.Delete(w.Context(), other))
		third, thirdInfra := w.newMachine(f, "third"), f.machine.New(w.namespace, "third")
		w.create(third, thirdInfra)
		w.saying(third, "Ready", "True")
		w.stays(otherInfra)
		change(w, other, func(m *clusterv1.Machine) { m.Annotations = nil })
		w.gone(other, otherInfra)
	})
}

package foreign

import (
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/foreign/provider"
)

// quiet is for how long nothing is written about objects that have nothing left to do.
const quiet = 20 * time.Second

// kinds are those of the family.
func (f family) kinds() []provider.Kind {
	return []provider.Kind{f.cluster, f.plane, f.machine, f.machineTemplate, f.pool, f.config, f.configTemplate}
}

// coreKinds are those of Cluster API.
func coreKinds() []provider.Kind {
	var kinds []provider.Kind
	for _, name := range []string{"Cluster", "MachineDeployment", "MachineSet", "Machine", "MachinePool"} {
		kinds = append(kinds, provider.Kind{GroupVersionKind: clusterv1.GroupVersion.WithKind(name)})
	}
	return kinds
}

// list returns the objects of a kind in the story.
func (w *world) list(k provider.Kind) []unstructured.Unstructured {
	w.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
	w.must(w.List(w.Context(), list, client.InNamespace(w.namespace)))
	return list.Items
}

// versions of the objects of these kinds, with their UIDs.
func (w *world) versions(kinds []provider.Kind) map[string]string {
	w.Helper()
	out := map[string]string{}
	for _, k := range kinds {
		for _, o := range w.list(k) {
			out[k.Kind+" "+o.GetName()] = string(o.GetUID()) + " " + o.GetResourceVersion()
		}
	}
	return out
}

// steadyStory has objects of all kinds that have nothing left to do.
func (w *world) steadyStory(f family) {
	w.up(f)
	d, p := w.newDeployment(f, "t", 2), w.newPool(f, "p")
	w.create(template(w, f.machineTemplate, "t"), template(w, f.configTemplate, "t"), d, p, f.pool.New(w.namespace, "p"))
	w.saying(d, "Available", "True")
	w.saying(p, "Available", "True")
	w.check("70 nothing is written when nothing happens", func(w *world) {
		kinds := append(coreKinds(), f.kinds()...)
		diff := "it was not looked at"
		for deadline := time.Now().Add(2 * patience); diff != "" && time.Now().Before(deadline); {
			before := w.versions(kinds)
			<-time.After(quiet)
			diff = cmp.Diff(before, w.versions(kinds))
		}
		if diff != "" {
			w.Error(diff)
		}
	})
}

// restarted restarts Slipway after the stories and looks at what that does to those that were steady: families by namespace.
func (w *world) restarted(steady map[string]family) {
	type state struct{ provider, machines map[string]string }
	look := func(w *world, f family) state {
		s := state{w.versions(f.kinds()), map[string]string{}}
		for _, m := range w.list(provider.Kind{GroupVersionKind: clusterv1.GroupVersion.WithKind("Machine")}) {
			s.machines[m.GetName()] = string(m.GetUID())
		}
		return s
	}
	stories, before := map[string]*world{}, map[string]state{}
	for namespace, f := range steady {
		part := *w
		part.namespace = namespace
		stories[namespace], before[namespace] = &part, look(&part, f)
	}
	w.manager.stop(w)
	w.manager.start(w)
	for _, f := range steady {
		w.in(w.T).up(f) // what was there before had its turn before
	}
	for namespace, f := range steady {
		part := stories[namespace]
		if diff := cmp.Diff(before[namespace], look(part, f), cmp.AllowUnexported(state{})); diff != "" || len(before[namespace].machines) == 0 {
			w.Errorf("a restart of Slipway changes objects of contract %s: %s", f.name, diff)
		}
		d := &clusterv1.MachineDeployment{ObjectMeta: part.meta("d")}
		change(part, d, func(d *clusterv1.MachineDeployment) { *d.Spec.Replicas = 3 })
		part.eventually(d, func() string {
			n := d.Status.AvailableReplicas
			return unless(n != nil && *n == 3, "%v available", n)
		})
		after := look(part, f).machines
		for name, uid := range before[namespace].machines {
			if after[name] != uid {
				w.Errorf("Machine %s of contract %s was replaced", name, f.name)
			}
		}
	}
}

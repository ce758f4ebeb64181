package foreign

import (
	"testing"

	"github.com/slipwayhq/slipway/test/foreign/provider"
)

// family are the kinds of one contract.
type family struct {
	name                                                                   string
	cluster, plane, machine, machineTemplate, pool, config, configTemplate provider.Kind
}

// families are the kinds of contract v1beta2 and those of v1beta1.
func families() (newer, older family) {
	byName := map[string]provider.Kind{}
	for _, k := range provider.Kinds() {
		byName[k.Kind] = k
	}
	of := func(prefix, contract string) family {
		k := func(name string) provider.Kind { return byName[prefix+name] }
		return family{contract, k("Cluster"), k("ControlPlane"), k("Machine"), k("MachineTemplate"), k("MachinePool"), k("Config"), k("ConfigTemplate")}
	}
	return of("Fake", "v1beta2"), of("Old", "v1beta1")
}

// TestForeignProvider plays the checks. The stories are independent: each has a namespace.
func TestForeignProvider(t *testing.T) {
	w := start(t)
	newer, older := families()
	still, olderStill := w.in(t).namespace, w.in(t).namespace
	steady := func(f family, namespace string) func(*world) {
		return func(w *world) {
			w.namespace = namespace
			w.steadyStory(f)
		}
	}
	t.Run("stories", func(t *testing.T) {
		for name, story := range map[string]func(*world){
			"cluster of contract v1beta2":    func(w *world) { w.clusterStory(newer) },
			"cluster of contract v1beta1":    func(w *world) { w.clusterStory(older) },
			"machines of contract v1beta2":   func(w *world) { w.machineStory(newer) },
			"machines of contract v1beta1":   func(w *world) { w.machineStory(older) },
			"deployment of contract v1beta2": func(w *world) { w.deploymentStory(newer) },
			"deployment of contract v1beta1": func(w *world) { w.deploymentStory(older) },
			"pool of contract v1beta2":       func(w *world) { w.poolStory(newer) }, // MP-08
			"pool of contract v1beta1":       func(w *world) { w.poolStory(older) },
			"deletion of contract v1beta2":   func(w *world) { w.deletionStory(newer) },
			"deletion of contract v1beta1":   func(w *world) { w.deletionStory(older) },
			"pause of contract v1beta2":      func(w *world) { w.pauseStory(newer) },
			"pause of contract v1beta1":      func(w *world) { w.pauseStory(older) },
			"steady of contract v1beta2":     steady(newer, still),
			"steady of contract v1beta1":     steady(older, olderStill),
			"failures":                       func(w *world) { w.failureStory(older) },
			"rights":                         func(w *world) { w.rightsStory() },
			"labels of definitions":          func(w *world) { w.labelStory() },
			"slow infrastructure":            func(w *world) { w.slowStory(newer) },
			"slow infrastructure of v1beta1": func(w *world) { w.slowStory(older) },
			"external infrastructure":        func(w *world) { w.externalStory(newer) },
			"endpoint of a control plane":    func(w *world) { w.planeEndpointStory(newer) },
			"own control plane":              func(w *world) { w.nodeFirstStory(newer) },
			"authority":                      func(w *world) { w.authorityStory(newer) },
			"connection":                     func(w *world) { w.connectionStory(newer) },
			"beside Slipway's providers":     func(w *world) { w.besideStory(newer) },
			"refusal":                        func(w *world) { w.refusalStory(newer) },
			"health":                         func(w *world) { w.healthStory(newer) },
			"older types":                    func(w *world) { w.olderStory(newer) },
			"garbage of clusters":            func(w *world) { w.garbageClusters(newer) },
			"garbage of control planes":      func(w *world) { w.garbageControlPlanes(newer) },
			"garbage of machines":            func(w *world) { w.garbageMachines(newer) },
			"garbage of pools":               func(w *world) { w.garbagePools(newer) },
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				story(w.in(t))
			})
		}
	})
	w.check("69 a restart of Slipway replaces nothing and writes nothing to the provider's objects", func(w *world) {
		w.restarted(map[string]family{still: newer, olderStill: older})
	})
	for _, violation := range w.provider.Violations() {
		t.Errorf("45, 46: %s", violation)
	}
}

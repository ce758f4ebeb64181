package foreign

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/slipwayhq/slipway/test/foreign/provider"
)

// slowStory has infrastructure that takes its time, and objects that wait for it.
func (w *world) slowStory(f family) {
	p := w.newCluster(f)
	c, infra := p.Cluster, annotated(p.infra, provider.HandsOff)
	m, machine := w.newMachine(f, "m"), f.machine.New(w.namespace, "m")
	w.create(c, infra, p.plane, m, machine)
	w.check("23 what slow infrastructure says of itself is mirrored, and nothing goes on without it", func(w *world) {
		change(w, infra, func(u *unstructured.Unstructured) {
			provider.SetCondition(u, "Ready", metav1.ConditionFalse, "takes until noon")
		})
		w.saying(c, "InfrastructureReady", "False ForeignFalse: takes until noon")
		w.eventually(machine, func() string {
			return unless(controllerutil.ContainsFinalizer(machine, provider.Finalizer), "the provider has not seen its machine")
		})
		id, _, _ := unstructured.NestedString(machine.Object, "spec", "providerID")
		if isTrue(c.Status.Initialization.ControlPlaneInitialized) || id != "" {
			w.Errorf("initialization %+v, provider ID %q", c.Status.Initialization, id)
		}
	})
	w.check("23, 28, 47 all goes on when it is provisioned: providers without a timer hear of it", func(w *world) {
		w.provisioned(f, infra, true)
		change(w, infra, func(u *unstructured.Unstructured) { provider.SetCondition(u, "Ready", metav1.ConditionTrue, "") })
		w.saying(m, "Ready", "True")
		w.saying(c, "ControlPlaneInitialized", "True")
	})
}

// externalStory has infrastructure that something else manages: the provider is silent, and the core is not.
func (w *world) externalStory(f family) {
	p := w.newCluster(f)
	c, infra := p.Cluster, p.infra
	infra.SetAnnotations(map[string]string{clusterv1.ManagedByAnnotation: "terraform"})
	w.create(c, infra, p.plane)
	w.check("27 an externally managed InfraCluster is owned, labelled and read", func(w *world) {
		w.eventually(infra, func() string { return owned(infra, c, "Cluster", "c") })
		w.saying(c, "InfrastructureReady", "False NotReady")
		change(w, infra, func(u *unstructured.Unstructured) {
			provider.Set(u, map[string]any{"host": "external.example", "port": int64(6443)}, "spec", "controlPlaneEndpoint")
		})
		w.provisioned(f, infra, true)
		w.saying(c, "Available", "True")
		if host := c.Spec.ControlPlaneEndpoint.Host; host != "external.example" {
			w.Errorf("endpoint %s", host)
		}
		w.eventually(infra, func() string { return unless(len(infra.GetFinalizers()) == 0, "the provider touched it") })
	})
}

// planeEndpointStory has a control plane that provides the endpoint.
func (w *world) planeEndpointStory(f family) {
	p := w.newCluster(f)
	c := p.Cluster
	annotated(p.infra, provider.HandsOff)
	annotated(p.plane, provider.HandsOff)
	provider.Set(p.plane, map[string]any{"host": "plane.example", "port": int64(8443)}, "spec", "controlPlaneEndpoint")
	w.create(c, p.infra, p.plane, w.kubeconfigOf(c))
	w.check("20 the endpoint of a control plane is taken when it is initialized, and not before", func(w *world) {
		w.provisioned(f, p.infra, true)
		w.saying(c, "InfrastructureReady", "True")
		w.saying(c, "ControlPlaneInitialized", "False")
		if c.Spec.ControlPlaneEndpoint.Host != "" {
			w.Errorf("the endpoint is %v before that", c.Spec.ControlPlaneEndpoint)
		}
		change(w, p.plane, func(u *unstructured.Unstructured) { u.SetAnnotations(nil) })
		w.saying(c, "Available", "True")
		if e := c.Spec.ControlPlaneEndpoint; e.Host != "plane.example" || e.Port != 8443 {
			w.Errorf("endpoint %v", e)
		}
	})
}

package foreign

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/test/foreign/provider"
)

// parts are a Cluster and what it refers to.
type parts struct {
	family
	Cluster      *clusterv1.Cluster
	infra, plane *unstructured.Unstructured
}

// newCluster returns a cluster of the story that is not created.
func (w *world) newCluster(f family) parts { return w.newClusterNamed(f, "c") }

func (w *world) newClusterNamed(f family, name string) parts {
	p := parts{f, &clusterv1.Cluster{ObjectMeta: w.meta(name)}, f.cluster.New(w.namespace, name), f.plane.New(w.namespace, name)}
	p.Cluster.Spec.InfrastructureRef, p.Cluster.Spec.ControlPlaneRef = f.cluster.Ref(name), f.plane.Ref(name)
	provider.Set(p.plane, "v1.36.3", "spec", "version")
	return p
}

// up creates a cluster and waits until it is available.
func (w *world) up(f family) parts {
	w.Helper()
	p := w.newCluster(f)
	w.create(p.Cluster, p.infra, p.plane)
	w.saying(p.Cluster, "Available", "True")
	return p
}

// clusterStory is a cluster whose infrastructure the test plays, and whose control plane the provider does.
func (w *world) clusterStory(f family) {
	p := w.newCluster(f)
	c, infra := p.Cluster, annotated(p.infra, provider.HandsOff)
	provider.Set(infra, map[string]any{"host": "early.example", "port": int64(6443)}, "spec", "controlPlaneEndpoint")
	w.create(c, infra, p.plane)
	w.check("17 the InfraCluster gets its owner and the label of its Cluster", func(w *world) {
		w.eventually(infra, func() string { return owned(infra, c, "Cluster", "c") })
	})
	w.check("18 the endpoint is taken over when the infrastructure is provisioned, and not before", func(w *world) {
		w.saying(c, "InfrastructureReady", "False NotReady")
		if c.Spec.ControlPlaneEndpoint.Host != "" {
			w.Errorf("the endpoint is %v before that", c.Spec.ControlPlaneEndpoint)
		}
	})
	w.check("26 an InfraCluster without Ready is judged by its initialization", func(w *world) {
		w.provisioned(f, infra, true)
		w.saying(c, "InfrastructureReady", "True Ready")
		w.eventually(c, func() string {
			return unless(c.Spec.ControlPlaneEndpoint.Host == "early.example" && isTrue(c.Status.Initialization.InfrastructureProvisioned), "endpoint %v", c.Spec.ControlPlaneEndpoint)
		})
	})
	w.check("30, 31 the control plane is initialized and mirrored", func(w *world) {
		w.saying(c, "ControlPlaneInitialized", "True")
		w.saying(c, "ControlPlaneAvailable", "True")
		w.saying(c, "RemoteConnectionProbe", "True")
	})
	w.clusterFollows(p)
	w.clusterOwns(p)
	w.check("29 an InfraCluster that is deleted behind its Cluster is missed, and another is taken", func(w *world) {
		w.must(w.Delete(w.Context(), infra))
		w.saying(c, "InfrastructureReady", "False ObjectDeleted")
		again := f.cluster.New(w.namespace, "c")
		w.create(again)
		w.saying(c, "InfrastructureReady", "True")
	})
	w.check("85 a kubeconfig that was broken for a while is taken again", func(w *world) { w.breakKubeconfig(c) })
}

// provisioned sets the flag of the contract.
func (w *world) provisioned(f family, u *unstructured.Unstructured, yes bool) {
	w.Helper()
	change(w, u, func(u *unstructured.Unstructured) {
		if f.cluster.Old {
			provider.Set(u, yes, "status", "ready")
		} else {
			provider.Set(u, yes, "status", "initialization", "provisioned")
		}
	})
}

// clusterFollows changes what the provider says.
func (w *world) clusterFollows(p parts) {
	c, infra := p.Cluster, p.infra
	w.check("24 Ready of the InfraCluster is mirrored, and initialization stays", func(w *world) {
		change(w, infra, func(u *unstructured.Unstructured) {
			provider.SetCondition(u, "Ready", metav1.ConditionFalse, "out of quota")
		})
		w.saying(c, "InfrastructureReady", "False ForeignFalse: out of quota")
		w.saying(c, "Available", "False", "out of quota")
		if !isTrue(c.Status.Initialization.InfrastructureProvisioned) {
			w.Error("initialization does not stay")
		}
		change(w, infra, func(u *unstructured.Unstructured) { provider.SetCondition(u, "Ready", metav1.ConditionTrue, "") })
		w.saying(c, "InfrastructureReady", "True ForeignTrue")
	})
	domain := func(name string) any {
		if p.cluster.Old {
			return map[string]any{name: map[string]any{"controlPlane": true}}
		}
		return []any{map[string]any{"name": name, "controlPlane": true}}
	}
	w.check("19, 21, 22 failure domains are mirrored, and the endpoint stays", func(w *world) {
		for _, name := range []string{"a", "b"} {
			change(w, infra, func(u *unstructured.Unstructured) {
				provider.Set(u, "other.example", "spec", "controlPlaneEndpoint", "host")
				provider.Set(u, domain(name), "status", "failureDomains")
			})
			w.eventually(c, func() string {
				d := c.Status.FailureDomains
				return unless(len(d) == 1 && d[0].Name == name && isTrue(d[0].ControlPlane), "failure domains %v", d)
			})
		}
		change(w, infra, func(u *unstructured.Unstructured) {
			unstructured.RemoveNestedField(u.Object, "status", "failureDomains")
		})
		w.eventually(c, func() string { return unless(len(c.Status.FailureDomains) == 0, "%v", c.Status.FailureDomains) })
		if c.Spec.ControlPlaneEndpoint.Host != "early.example" {
			w.Errorf("endpoint %v", c.Spec.ControlPlaneEndpoint)
		}
	})
	w.check("25 an InfraCluster that takes back that it is provisioned does not take back the Cluster's initialization", func(w *world) {
		w.provisioned(p.family, infra, false)
		change(w, infra, func(u *unstructured.Unstructured) {
			provider.SetCondition(u, "Ready", metav1.ConditionFalse, "no more")
		})
		w.saying(c, "InfrastructureReady", "False ForeignFalse: no more")
		if !isTrue(c.Status.Initialization.InfrastructureProvisioned) {
			w.Errorf("initialization %v", c.Status.Initialization)
		}
		change(w, infra, func(u *unstructured.Unstructured) { provider.SetCondition(u, "Ready", metav1.ConditionTrue, "") })
		w.provisioned(p.family, infra, true)
	})
	w.check("32 a foreign condition is kept and counted by its gate", func(w *world) {
		change(w, c, func(c *clusterv1.Cluster) {
			c.Spec.AvailabilityGates = []clusterv1.ClusterAvailabilityGate{{ConditionType: "Blessed"}}
			c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: "Blessed", Status: "False", Reason: "NotYet", Message: "no blessing", LastTransitionTime: metav1.Now()})
		})
		w.saying(c, "Available", "False", "Blessed: no blessing")
		change(w, c, func(c *clusterv1.Cluster) { c.Spec.AvailabilityGates = nil })
		w.saying(c, "Available", "True")
		w.saying(c, "Blessed", "False NotYet")
	})
}

// clusterOwns takes away what the Cluster wrote on the provider's objects.
func (w *world) clusterOwns(p parts) {
	c := p.Cluster
	w.check("67 owners and labels that are removed come back", func(w *world) {
		for _, u := range []*unstructured.Unstructured{p.infra, p.plane} {
			change(w, u, func(u *unstructured.Unstructured) { u.SetOwnerReferences(nil); u.SetLabels(nil) })
			w.eventually(u, func() string { return owned(u, c, "Cluster", "c") })
		}
	})
	w.check("68 an owner of an older version is brought up to date", func(w *world) {
		change(w, p.infra, func(u *unstructured.Unstructured) {
			refs := u.GetOwnerReferences()
			refs[0].APIVersion = "cluster.x-k8s.io/v1beta1"
			u.SetOwnerReferences(refs)
		})
		w.eventually(p.infra, func() string { return owned(p.infra, c, "Cluster", "c") })
	})
}

// breakKubeconfig writes a kubeconfig that leads nowhere, and repairs it.
func (w *world) breakKubeconfig(c *clusterv1.Cluster) {
	secret := w.kubeconfig(c)
	good := secret.Data["value"]
	secret.Data["value"] = []byte("not a kubeconfig")
	w.must(w.Update(w.Context(), secret))
	secret = w.kubeconfig(c)
	secret.Data["value"] = good
	w.must(w.Update(w.Context(), secret))
	w.saying(c, "RemoteConnectionProbe", "True")
}

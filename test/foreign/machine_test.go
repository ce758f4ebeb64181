package foreign

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/foreign/provider"
)

// newMachine returns a Machine with bootstrap data that nothing has to make.
func (w *world) newMachine(f family, name string) *clusterv1.Machine {
	data := "data"
	m := &clusterv1.Machine{ObjectMeta: w.meta(name)}
	m.Spec = clusterv1.MachineSpec{ClusterName: "c", Version: "v1.36.3", InfrastructureRef: f.machine.Ref(name), Bootstrap: clusterv1.Bootstrap{DataSecretName: &data}}
	return m
}

// kubeconfigOf is the Secret with the kubeconfig of a cluster that nothing else provides: that of the provider.
func (w *world) kubeconfigOf(c *clusterv1.Cluster) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: c.Name + "-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: c.Name}},
		Type:       clusterv1.ClusterSecretType, Data: map[string][]byte{"value": w.provider.Kubeconfig()},
	}
}

// kubeconfig reads that Secret.
func (w *world) kubeconfig(c *clusterv1.Cluster) *corev1.Secret {
	w.Helper()
	s := &corev1.Secret{}
	w.must(w.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: c.Name + "-kubeconfig"}, s))
	return s
}

// node reads the Node of a Machine.
func (w *world) node(m *clusterv1.Machine) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: provider.NodeName(m.Spec.ProviderID)}}
}

// machineStory has Machines that stand alone.
func (w *world) machineStory(f family) {
	w.up(f)
	m, infra := w.newMachine(f, "m"), f.machine.New(w.namespace, "m")
	m.Spec.FailureDomain = "wanted"
	infra.SetAnnotations(map[string]string{"foreign.example/zone": "chosen"})
	w.create(m, infra)
	w.check("37, 44 a Machine gets its infrastructure and its Node", func(w *world) {
		w.eventually(infra, func() string { return owned(infra, m, "Machine", "c") })
		w.saying(m, "Ready", "True")
		if owner := metav1.GetControllerOf(infra); owner == nil || owner.UID != m.UID || !isTrue(owner.BlockOwnerDeletion) {
			w.Errorf("controller owner is %v", owner)
		}
		if m.Status.Phase != "Running" || m.Spec.ProviderID == "" || m.Status.NodeRef.Name == "" {
			w.Errorf("phase %s, provider ID %q, Node %q", m.Status.Phase, m.Spec.ProviderID, m.Status.NodeRef.Name)
		}
	})
	w.check("38 a Machine gets bootstrap data from a foreign config", func(w *world) {
		other, config := w.newMachine(f, "configured"), f.config.New(w.namespace, "configured")
		other.Spec.Bootstrap = clusterv1.Bootstrap{ConfigRef: f.config.Ref("configured")}
		w.create(other, config, f.machine.New(w.namespace, "configured"))
		w.saying(other, "Ready", "True")
		w.eventually(config, func() string { return owned(config, other, "Machine", "c") })
		w.saying(other, "BootstrapConfigReady", "True")
	})
	w.check("48 addresses reach the Machine", func(w *world) {
		w.eventually(m, func() string {
			return unless(len(m.Status.Addresses) == 1 && m.Status.Addresses[0].Address == "10.9.8.7", "%v", m.Status.Addresses)
		})
	})
	w.failureDomains(f, m)
	w.machineFollows(f, m, infra)
	w.machineNode(m, infra)
	w.check("53 a machine that never becomes ready says so", func(w *world) {
		other := w.newMachine(f, "never")
		w.create(other, annotated(f.machine.New(w.namespace, "never"), provider.Never))
		w.saying(other, "InfrastructureReady", "False ForeignFalse: It never becomes ready")
		unprepared := w.newMachine(f, "unprepared")
		unprepared.Spec.Bootstrap = clusterv1.Bootstrap{ConfigRef: f.config.Ref("unprepared")}
		w.create(unprepared, f.machine.New(w.namespace, "unprepared"), annotated(f.config.New(w.namespace, "unprepared"), provider.Never))
		w.saying(unprepared, "BootstrapConfigReady", "False ForeignFalse: It never becomes ready")
		alone := w.newMachine(f, "without-node")
		w.create(alone, annotated(f.machine.New(w.namespace, "without-node"), provider.NoNode))
		w.saying(alone, "NodeHealthy", "Unknown NodeDoesNotExist", provider.ID(w.namespace, "without-node"))
	})
	w.check("54 an InfraMachine that is deleted behind its Machine is missed", func(w *world) {
		w.must(w.Delete(w.Context(), infra))
		w.saying(m, "InfrastructureReady", "False ObjectDeleted")
		w.notFailed(m)
	})
}

// notFailed checks that a Machine is in a phase that controllers still set.
func (w *world) notFailed(m *clusterv1.Machine) {
	w.Helper()
	if m.Status.Phase == string(clusterv1.MachinePhaseFailed) {
		w.Errorf("phase %s", m.Status.Phase)
	}
}

// failureDomains are where the provider says that machines are.
func (w *world) failureDomains(f family, m *clusterv1.Machine) {
	if !f.machine.Old {
		w.check("49 the failure domain of the infrastructure reaches the status alone", func(w *world) {
			w.eventually(m, func() string {
				return unless(m.Status.FailureDomain == "chosen", "status has %q", m.Status.FailureDomain)
			})
			if m.Spec.FailureDomain != "wanted" {
				w.Errorf("the spec has %q", m.Spec.FailureDomain)
			}
		})
	}
	w.check("50, 73 the failure domain in the spec of the infrastructure reaches the spec", func(w *world) {
		other, infra := w.newMachine(f, "placed"), f.machine.New(w.namespace, "placed")
		provider.Set(infra, "from-spec", "spec", "failureDomain")
		w.create(other, infra)
		w.eventually(other, func() string {
			return unless(other.Spec.FailureDomain == "from-spec", "spec has %q", other.Spec.FailureDomain)
		})
	})
}

func (w *world) machineFollows(f family, m *clusterv1.Machine, infra *unstructured.Unstructured) {
	w.check("52 Ready of the InfraMachine is mirrored, and initialization stays", func(w *world) {
		change(w, infra, func(u *unstructured.Unstructured) {
			provider.SetCondition(u, "Ready", metav1.ConditionFalse, "the disk is slow")
		})
		w.saying(m, "InfrastructureReady", "False ForeignFalse: the disk is slow")
		w.saying(m, "Ready", "False", "the disk is slow")
		if !isTrue(m.Status.Initialization.InfrastructureProvisioned) {
			w.Error("initialization does not stay")
		}
		change(w, infra, func(u *unstructured.Unstructured) { provider.SetCondition(u, "Ready", metav1.ConditionTrue, "") })
		w.saying(m, "Ready", "True")
	})
	w.check("57 a readiness gate follows a foreign condition", func(w *world) {
		change(w, m, func(m *clusterv1.Machine) {
			m.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "Inspected"}}
			m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: "Inspected", Status: "False", Reason: "NotYet", Message: "no inspector", LastTransitionTime: metav1.Now()})
		})
		w.saying(m, "Ready", "False", "Inspected: no inspector")
		change(w, m, func(m *clusterv1.Machine) { m.Spec.ReadinessGates = nil })
		w.saying(m, "Ready", "True")
		w.saying(m, "Inspected", "False NotYet")
	})
	w.check("67 the owner and the label of an InfraMachine come back", func(w *world) {
		change(w, infra, func(u *unstructured.Unstructured) { u.SetOwnerReferences(nil); u.SetLabels(nil) })
		w.eventually(infra, func() string { return owned(infra, m, "Machine", "c") })
	})
}

// machineNode looks at what the Machine writes on its Node.
func (w *world) machineNode(m *clusterv1.Machine, infra *unstructured.Unstructured) {
	w.check("55, 56, 58 labels, annotations and taints of the Node are kept", func(w *world) {
		change(w, m, func(m *clusterv1.Machine) { m.Labels["node.cluster.x-k8s.io/rack"] = "7" })
		change(w, infra, func(u *unstructured.Unstructured) { provider.Set(u, true, "status", "interruptible") })
		n := w.node(m)
		w.eventually(n, func() string {
			for _, t := range n.Spec.Taints {
				if t.MatchTaint(&clusterv1.NodeUninitializedTaint) {
					return "the taint of a new Node is still there"
				}
			}
			if _, is := n.Labels[clusterv1.InterruptibleLabel]; !is {
				return "the Node of an interruptible machine does not say so"
			}
			return unless(n.Annotations[clusterv1.MachineAnnotation] == m.Name && n.Annotations[clusterv1.ClusterNameAnnotation] == "c" &&
				n.Labels["node.cluster.x-k8s.io/rack"] == "7", "annotations %v, labels %v", n.Annotations, n.Labels)
		})
	})
}

// failureStory has the terminal failures that only contract v1beta1 knows.
func (w *world) failureStory(f family) {
	w.up(f)
	m, infra := w.newMachine(f, "m"), f.machine.New(w.namespace, "m")
	w.create(m, infra)
	w.saying(m, "Ready", "True")
	w.check("72 a failure is told in the deprecated status, and is gone with its cause", func(w *world) {
		change(w, infra, func(u *unstructured.Unstructured) {
			provider.Set(u, "CreateError", "status", "failureReason")
			provider.Set(u, "no such image", "status", "failureMessage")
		})
		w.eventually(m, func() string {
			//lint:ignore SA1019 the deprecated fields are what this is about
			d := m.Status.Deprecated
			//lint:ignore SA1019 as above
			return unless(d != nil && d.V1Beta1 != nil && d.V1Beta1.FailureReason != nil && string(*d.V1Beta1.FailureReason) == "CreateError", "no failure is told")
		})
		w.notFailed(m)
		change(w, infra, func(u *unstructured.Unstructured) {
			unstructured.RemoveNestedField(u.Object, "status", "failureReason")
			unstructured.RemoveNestedField(u.Object, "status", "failureMessage")
		})
		w.eventually(m, func() string {
			//lint:ignore SA1019 as above
			d := m.Status.Deprecated
			//lint:ignore SA1019 as above
			return unless(d == nil || d.V1Beta1 == nil || d.V1Beta1.FailureReason == nil, "the failure is still told")
		})
	})
}

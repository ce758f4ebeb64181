package foreign

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/foreign/provider"
)

// nodeFirstStory has control planes that are initialized by their first Machine. CL-10, MA-08, MA-09
func (w *world) nodeFirstStory(f family) {
	w.check("33 a Cluster without controlPlaneRef is initialized by its first control plane Machine", func(w *world) {
		w.controlPlaneMachine(f, "alone", func(p parts) {
			p.Cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{}
		})
	})
	w.check("34 a control plane that waits for the Node of its first Machine is initialized", func(w *world) {
		w.controlPlaneMachine(f, "first", func(p parts) { annotated(p.plane, provider.AfterNode) })
	})
	w.check("33 so is one whose control plane Machines are of a MachineSet", func(w *world) { w.in(w.T).controlPlaneSet(f) })
	w.check("34, 51 a control plane with Machines is initialized by a Node that comes late", func(w *world) { w.in(w.T).lateNode(f) })
}

// controlPlaneMachine creates a cluster with a control plane Machine, and waits until it is initialized.
func (w *world) controlPlaneMachine(f family, name string, adapt func(parts)) {
	w.Helper()
	part := w.in(w.T)
	p := part.newCluster(f)
	adapt(p)
	objects := []client.Object{p.Cluster, p.infra}
	if p.Cluster.Spec.ControlPlaneRef.IsDefined() {
		objects = append(objects, p.plane)
	} else {
		objects = append(objects, part.kubeconfigOf(p.Cluster))
	}
	m := part.newMachine(f, name)
	m.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
	part.create(append(objects, m, f.machine.New(part.namespace, name))...)
	part.saying(p.Cluster, "ControlPlaneInitialized", "True")
	part.eventually(m, func() string { return unless(strings.HasPrefix(m.Status.NodeRef.Name, "node-"), "no nodeRef") })
}

// controlPlaneSet has a MachineSet with control plane Machines, and no control plane object.
func (w *world) controlPlaneSet(f family) {
	p := w.newCluster(f)
	p.Cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{}
	replicas, data, labels := int32(2), "data", map[string]string{"set": "planes"}
	set := &clusterv1.MachineSet{ObjectMeta: w.meta("planes")}
	set.Spec.ClusterName, set.Spec.Replicas, set.Spec.Selector.MatchLabels = "c", &replicas, labels
	set.Spec.Template.Labels = map[string]string{"set": "planes", clusterv1.MachineControlPlaneLabel: ""}
	set.Spec.Template.Spec = clusterv1.MachineSpec{
		ClusterName: "c", Version: "v1.36.3", InfrastructureRef: f.machineTemplate.Ref("t"), Bootstrap: clusterv1.Bootstrap{DataSecretName: &data},
	}
	w.create(p.Cluster, p.infra, w.kubeconfigOf(p.Cluster), template(w, f.machineTemplate, "t"), set)
	w.saying(p.Cluster, "ControlPlaneInitialized", "True")
	w.eventually(set, func() string {
		n := set.Status.AvailableReplicas
		return unless(n != nil && *n == 2, "%v available", n)
	})
	machines := w.machinesOf("set", "planes")
	for _, m := range machines {
		if _, is := m.Labels[clusterv1.MachineControlPlaneLabel]; !is || m.Status.NodeRef.Name == "" {
			w.Errorf("Machine %s: labels %v, Node %q", m.Name, m.Labels, m.Status.NodeRef.Name)
		}
	}
	if len(machines) != 2 {
		w.Errorf("%d Machines", len(machines))
	}
}

// lateNode has a control plane that creates its Machines where the Cluster says, and whose Nodes come after their provider IDs:
// nothing tells of Nodes before the control plane is initialized.
func (w *world) lateNode(f family) {
	p := w.newCluster(f)
	p.plane.SetAnnotations(map[string]string{provider.AfterNode: "", provider.NoNode: ""})
	provider.Set(p.plane, int64(3), "spec", "replicas")
	provider.Set(p.plane, f.machine.Kind, "spec", "machineKind")
	provider.Set(p.infra, []any{
		map[string]any{"name": "a", "controlPlane": true}, map[string]any{"name": "b", "controlPlane": false}, map[string]any{"name": "c", "controlPlane": true},
	}, "spec", "failureDomains")
	w.create(p.Cluster, p.infra, p.plane)
	var first *clusterv1.Machine
	for i, domain := range []string{"a", "c", "a"} {
		m := &clusterv1.Machine{ObjectMeta: w.meta(fmt.Sprintf("c-%d", i))}
		w.eventually(m, func() string {
			return unless(m.Spec.FailureDomain == domain && m.Spec.ProviderID != "", "failure domain %q, provider ID %q", m.Spec.FailureDomain, m.Spec.ProviderID)
		})
		w.saying(m, "NodeHealthy", "Unknown NodeDoesNotExist", m.Spec.ProviderID)
		if first == nil {
			first = m
		}
	}
	w.saying(p.Cluster, "ControlPlaneInitialized", "False")
	node := w.node(first)
	node.Spec.ProviderID = first.Spec.ProviderID
	w.create(node)
	w.eventually(first, func() string {
		return unless(first.Status.NodeRef.Name == node.Name, "Node %q", first.Status.NodeRef.Name)
	})
	w.saying(p.Cluster, "ControlPlaneInitialized", "True")
	w.must(w.Delete(w.Context(), p.Cluster))
	w.gone(first, p.Cluster)
}

// authorityStory has a Cluster without a control plane object, and a certificate authority from which the core makes the
// kubeconfig. CL-11
func (w *world) authorityStory(f family) {
	p := w.newCluster(f)
	c := p.Cluster
	c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{}
	address, err := url.Parse(w.server.Config.Host)
	w.must(err)
	port, err := strconv.Atoi(address.Port())
	w.must(err)
	provider.Set(p.infra, map[string]any{"host": address.Hostname(), "port": int64(port)}, "spec", "controlPlaneEndpoint")
	m := w.newMachine(f, "alone")
	m.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
	w.create(w.authorityOf(c), c, p.infra, m, f.machine.New(w.namespace, "alone"))
	w.check("35 the kubeconfig is made from the authority, and leads to the cluster", func(w *world) {
		w.saying(c, "RemoteConnectionProbe", "True")
		w.saying(c, "ControlPlaneInitialized", "True")
		s := w.kubeconfig(c)
		if owner := metav1.GetControllerOf(s); owner == nil || owner.UID != c.UID || s.Type != clusterv1.ClusterSecretType || s.Labels[clusterv1.ClusterNameLabel] != "c" {
			w.Errorf("type %s, labels %v, owner %v", s.Type, s.Labels, owner)
		}
		w.eventually(m, func() string { return unless(m.Status.NodeRef.Name != "", "no Node") })
	})
}

// authorityOf is the Secret with the certificate authority of the API server, as the user of a Cluster supplies it.
func (w *world) authorityOf(c *clusterv1.Cluster) *corev1.Secret {
	w.Helper()
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(w.server.Dir, "pki", name))
		w.must(err)
		return data
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: c.Name + "-ca", Labels: map[string]string{clusterv1.ClusterNameLabel: c.Name}},
		Type:       clusterv1.ClusterSecretType, Data: map[string][]byte{corev1.TLSCertKey: read("ca.crt"), corev1.TLSPrivateKeyKey: read("ca.key")},
	}
}

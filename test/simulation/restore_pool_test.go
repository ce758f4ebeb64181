package simulation

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/utils/ptr"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/local/backend"
)

// backupPool is a MachinePool of two as a backup keeps it. A halted one stands still in the middle of a rollout: a third
// machine, of the new template, does not become Ready.
func backupPool(clusterName string, halted bool) (objects []client.Object, nodes []corev1.Node) {
	name := clusterName + "-p"
	labels := map[string]string{clusterv1.ClusterNameLabel: clusterName}
	p := &clusterv1.MachinePool{ObjectMeta: meta(name)}
	p.Labels, p.Spec.ClusterName, p.Spec.Replicas = labels, clusterName, ptr.To(int32(2))
	p.Spec.Template.Spec = clusterv1.MachineSpec{
		ClusterName: clusterName, Version: "v1.36.3", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("data")},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalMachinePool", Name: name},
	}
	lp := &infrav1.LocalMachinePool{ObjectMeta: meta(name)}
	lp.Labels, lp.Spec.ProviderID = maps.Clone(labels), "slipway:///ns/"+name
	lp.Spec.Template.Backend.Container = &infrav1.ContainerMachine{}
	machines := 2
	if halted {
		machines = 3
	}
	for n := range machines {
		ready, member := metav1.ConditionTrue, fmt.Sprintf("%s-%d", name, n)
		m, l := &clusterv1.Machine{ObjectMeta: meta(member)}, &infrav1.LocalMachine{ObjectMeta: meta(member)}
		m.Labels = map[string]string{clusterv1.ClusterNameLabel: clusterName, clusterv1.MachinePoolNameLabel: name}
		l.Labels, l.Annotations = maps.Clone(m.Labels), map[string]string{backend.PoolAnnotation: name}
		l.Spec.Backend.Container = &infrav1.ContainerMachine{}
		if halted && n < 2 {
			l.Annotations["infrastructure.slipway.dev/template-hash"] = "old"
		} else if halted {
			ready = metav1.ConditionFalse
		}
		m.Spec, m.Finalizers = *p.Spec.Template.Spec.DeepCopy(), []string{clusterv1.MachineFinalizer}
		m.Spec.Deletion.NodeDeletionTimeoutSeconds = ptr.To(int32(10)) // the default
		*m.Spec.Bootstrap.DataSecretName, m.Spec.InfrastructureRef.Kind, m.Spec.InfrastructureRef.Name = "", "LocalMachine", member
		node := boot(m, name, ready)
		node.Annotations[clusterv1.OwnerKindAnnotation] = "MachinePool"
		l.Spec.ProviderID = m.Spec.ProviderID
		lp.Spec.ProviderIDList = append(lp.Spec.ProviderIDList, m.Spec.ProviderID)
		objects, nodes = append(objects, m, l), append(nodes, node)
	}
	p.Spec.ProviderIDList = slices.Clone(lp.Spec.ProviderIDList)
	return append(objects, p, lp), nodes
}

// The test would see it: a pool that a user scales creates machines, and one whose machines go loses its Machines.
func TestRestoredPoolsThenChanged(t *testing.T) { // OR-01
	w := restoredWhole(t, 7)
	user(w, "c1-p", func(p *clusterv1.MachinePool) { *p.Spec.Replicas = 3 })
	user(w, "c2-p-1", func(l *infrav1.LocalMachine) { l.Finalizers = nil })
	w.must(w.world.API.Remove(infrav1.GroupVersion.WithKind("LocalMachine"), client.ObjectKey{Namespace: "ns", Name: "c2-p-1"}, "test"))
	w.proceed()
	w.expect(t, "LocalMachinePool c1-p: create LocalMachine", "MachinePool c2-p: delete Machine c2-p-1: its infrastructure machine is gone")
}

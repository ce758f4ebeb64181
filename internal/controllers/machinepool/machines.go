package machinepool

import (
	"context"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

const (
	// fieldManager is the field manager of the Machines, which owns fields of existing ones.
	fieldManager = kube.ManagerPrefix + Name
	// referenceManager is the field manager with which Cluster API's own controller applies the Machines of a pool.
	referenceManager = "machinepool-controller"
)

// newMachine returns the Machine for an infrastructure machine. The controller creates it, and compares existing
// Machines with it. It has the same name as the infrastructure machine and no bootstrap config, because the pool has
// one for all.
func newMachine(s snapshot, a createMachine) *clusterv1.Machine {
	none := ""
	template := s.Pool.Spec.Template
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Pool.Namespace, Name: a.Name,
			Labels: maps.Clone(template.Labels), Annotations: maps.Clone(inplace.WithoutMarks(template.Annotations)),
			Finalizers:      []string{clusterv1.MachineFinalizer}, // the Machine controller's finalizer, which it then does not have to add
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.Pool, clusterv1.GroupVersion.WithKind("MachinePool"))},
		},
		Spec: *template.Spec.DeepCopy(),
	}
	if m.Labels == nil {
		m.Labels = map[string]string{}
	}
	maps.Copy(m.Labels, memberLabels(s.Pool))
	m.Labels = ownership.PassWatchLabel(s.Pool, m.Labels)
	m.Spec.ClusterName = s.Pool.Spec.ClusterName
	m.Spec.Deletion = deletionOf(s)
	m.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: &none}
	m.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: template.Spec.InfrastructureRef.APIGroup, Kind: a.Kind, Name: a.Name,
	}
	return m
}

// deletionOf returns the deletion timeouts of the pool's Machines. The default node deletion timeout is set
// explicitly, so that the API server's default for Machines is not used.
func deletionOf(s snapshot) clusterv1.MachineDeletionSpec {
	out := *s.Pool.Spec.Template.Spec.Deletion.DeepCopy()
	if out.NodeDeletionTimeoutSeconds == nil {
		out.NodeDeletionTimeoutSeconds = new(int32(defaultNodeDeletionTimeout / time.Second))
	}
	return out
}

// createMachine applies the new Machine, so that its fields can be changed and removed later. An existing Machine
// with the same name and other content causes a conflict. act calls it.
func (c *controller) createMachine(ctx context.Context, s snapshot, a createMachine) error {
	m, err := machines.Applied(newMachine(s, a))
	if err != nil {
		return err
	}
	return c.writer.CreateApplied(ctx, m)
}

// syncMachine updates a Machine to match the template and its Node. Machines of earlier versions and of
// Cluster API's own controller were created by field managers that wrote nothing else. act calls it.
func (c *controller) syncMachine(ctx context.Context, s snapshot, a syncMachine) error {
	m := machineOf(s, a.Machine)
	want := machines.InPlace(newMachine(s, createMachine{Name: m.Name, Kind: m.Spec.InfrastructureRef.Kind}), m)
	want.Spec.Version = versionOf(s, *m)
	keeper := machines.MachineWriter{
		Live: c.live, Writer: c.writer, Manager: fieldManager, Former: []string{fieldManager, referenceManager}, Exclusive: true,
	}
	return keeper.Sync(ctx, m, want)
}

package controlplane

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane/addons"
	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane/workload"
	"github.com/slipwayhq/slipway/internal/kubeadm/recovery"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

// act executes one action of the plan of [decide]. The driver of package reconciler calls it for each action in order,
// until one fails. An action that is not listed is an action on Machines that all owners of Machines share (package
// machines).
func (c *controller) act(ctx context.Context, s snapshot, do reconciler.Action) error {
	switch a := do.(type) {
	case labelWithCluster:
		return c.writer.Patch(ctx, s.ControlPlane, func(o client.Object) { ownership.Label(o, clusterv1.ClusterNameLabel, a.Cluster) })
	case adopt:
		return c.adopt(ctx, s, a)
	case createSecret, ownSecret, writeKubeconfig:
		return c.actOnSecrets(ctx, s, do)
	case createMachine:
		return c.create(ctx, s, a)
	case setConditions:
		return c.setConditions(ctx, s, a)
	case moveLeader, removeMember:
		return c.actOnEtcd(ctx, s, do)
	case acceptRecovery, orderEtcd, excludeFromDrain, deleteNode, finishRecovery:
		return c.actOnRecovery(ctx, s, do)
	case removeHook:
		return c.annotate(ctx, s.Machines.Named(a.Machine).Machine, controlplanev1.PreTerminateHookCleanupAnnotation, nil)
	case recordRemediation:
		return c.annotate(ctx, s.ControlPlane, controlplanev1.RemediationInProgressAnnotation, new(a.Record.Text()))
	case clearRemediation:
		return c.annotate(ctx, s.ControlPlane, controlplanev1.RemediationInProgressAnnotation, nil)
	case recordExpiry:
		return c.annotate(ctx, s.Configs[a.Config], clusterv1.MachineCertificatesExpiryDateAnnotation, new(a.Expiry.UTC().Format(time.RFC3339)))
	case inPlaceUpdate:
		return c.beginUpdate(ctx, s, a.Machine)
	case addons.Change:
		return c.applyAddonChange(ctx, s, a)
	case clone.OwnTemplate:
		return clone.Act(ctx, c.writer, clone.Owner{Object: s.ControlPlane, Cluster: s.Cluster, Templates: clone.Templates{s.Infra}}, do)
	}
	return c.machineWriter().Act(ctx, s.machinesState(), do)
}

// machineWriter returns the writer of Machines. Former lists the field managers of previous versions: before the
// reference implementation used server-side apply, its field manager was "manager".
func (c *controller) machineWriter() machines.MachineWriter {
	return machines.MachineWriter{
		Live: c.live, Writer: c.writer, Manager: manager, MetadataManager: metadataManager, Former: []string{"manager", manager}, Pending: &c.pending,
	}
}

// create creates the infrastructure machine, the KubeadmConfig and then the Machine.
func (c *controller) create(ctx context.Context, s snapshot, a createMachine) error {
	d := s.definition()
	d.Spec.FailureDomain = a.Domain
	if record, ok := remediationInProgress(s.ControlPlane); ok && a.Joins {
		d.MachineAnnotations[controlplanev1.RemediationForAnnotation] = record.Text()
	}
	objects, err := d.Objects(a.Name)
	if err != nil {
		return err
	}
	config, err := newConfig(s.ControlPlane, metav1.ObjectMeta{
		Namespace: s.ControlPlane.Namespace, Name: a.Name, Labels: d.Labels, Annotations: d.Annotations, OwnerReferences: []metav1.OwnerReference{d.Owner},
	}, a.Joins)
	if err != nil {
		return err
	}
	last := len(objects) - 1
	all := append(append(objects[:last:last], config), objects[last])
	c.verified.Forget(s.ControlPlane) // a failed creation may leave orphans
	if err := c.machineWriter().CreateAll(ctx, all...); err != nil {
		return err
	}
	c.pending.Created(s.ControlPlane.UID, a.Name, s.Now)
	return nil
}

// setConditions applies the Machine conditions that the control plane owns. All others are owned by other
// controllers.
func (c *controller) setConditions(ctx context.Context, s snapshot, a setConditions) error {
	m := s.Machines.Named(a.Machine).Machine
	owned := []string{clusterv1.MachineOwnerRemediatedCondition}
	for _, condition := range a.Conditions {
		owned = append(owned, condition.Type)
	}
	if err := c.writer.TransferStatusOwnership(ctx, c.live, m, kube.OnlyConditions(owned...)); err != nil {
		return err
	}
	return c.writer.ApplyStatus(ctx, m, map[string]any{"conditions": a.Conditions})
}

// annotate sets an annotation, or removes it if the value is nil.
func (c *controller) annotate(ctx context.Context, o client.Object, key string, value *string) error {
	return c.writer.Patch(ctx, o, func(o client.Object) { kube.Annotate(o, key, value) })
}

// actOnEtcd changes the membership of etcd through its healthy members.
func (c *controller) actOnEtcd(ctx context.Context, s snapshot, do reconciler.Action) error {
	var nodes []string
	for _, m := range s.Etcd.Members {
		if m.Health == workload.MemberHealthy {
			nodes = append(nodes, m.Name)
		}
	}
	members, err := c.members.Etcd(ctx, client.ObjectKeyFromObject(s.Cluster), nodes)
	if err != nil {
		return err
	}
	switch a := do.(type) {
	case moveLeader:
		return members.MoveLeader(ctx, a.To)
	case removeMember:
		return members.RemoveMember(ctx, a.ID)
	}
	return nil
}

// readRequest returns the parts of the workload cluster that are read for the Machines of the snapshot.
func (s snapshot) readRequest() workload.ReadRequest {
	cluster := client.ObjectKeyFromObject(s.Cluster)
	q := workload.ReadRequest{Cluster: cluster, Managed: s.managesEtcd(), Others: recovery.LostNodes(s.ControlPlane.Annotations), Certificates: expiryServers(cluster, s.Members, s.Now)}
	for _, m := range s.Machines {
		node := m.Status.NodeRef.Name
		switch {
		case node == "":
		case m.Deleted:
			q.Leaving = append(q.Leaving, node)
		default:
			q.Nodes = append(q.Nodes, node)
		}
	}
	return q
}

// read makes one read that [decide] requested, because it is too costly for every reconciliation, and returns the
// snapshot with its result. The state of the workload cluster is cached.
func (c *controller) read(ctx context.Context, s snapshot, q reconciler.ReadRequest) (snapshot, error) {
	switch q := q.(type) {
	case readKubeadm:
		return c.readKubeadmObjects(ctx, s), nil
	case checkInPlaceUpdate:
		check, err := c.checkUpdate(ctx, s, q.Machine)
		s.InPlace = map[string]inplace.UpdateCheck{q.Machine: check} // only one Machine is updated at a time
		return s, err
	}
	state, err := workload.Reader{Clusters: c.workloads, Members: c.members, Certificates: c.certificates, Now: c.now}.Read(ctx, s.readRequest())
	if err != nil {
		return s, err
	}
	s.Workload, s.Fresh = s.Workload.Merge(state), true
	c.states.Set(s.ControlPlane.UID, s.Workload)
	return s.compared(), nil
}

package controlplane

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane/addons"
	controlplaneworkload "github.com/slipwayhq/slipway/internal/kubeadm/controlplane/workload"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
	"github.com/slipwayhq/slipway/internal/naming"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	slipwayworkload "github.com/slipwayhq/slipway/internal/workload"
)

// snapshot is the input of a decision about a KubeadmControlPlane. observe reads it in each reconciliation, and read
// adds the state of the workload cluster. [decide] and report must not change it, because it shares objects with the
// cache.
type snapshot struct {
	Now          time.Time
	Settings     Settings
	ControlPlane *controlplanev1.KubeadmControlPlane
	// Cluster owns the control plane. It is nil if there is no owner or the Cluster does not exist.
	Cluster *clusterv1.Cluster
	// Machines that the control plane controls, sorted by name.
	Machines machines.OwnedMachines
	// Adoptable are control plane Machines of the Cluster without a controller. Hidden are the names of Machines that
	// lack the watch label.
	Adoptable []*clusterv1.Machine
	Hidden    []string
	// Created are the names of created Machines that are not in the cache yet.
	Created []string
	// Workers is the number of remaining worker Machines and MachinePools of the Cluster. It is only read while the
	// control plane is being deleted.
	Workers int
	// Verified is true if all Machines and clones were compared in full for this generation, and were up to date.
	Verified bool
	// Infra is the template of infrastructure machines. Clones contains the clones of the Machines.
	Infra  clone.Template
	Clones *clone.Clones
	// Configs are the KubeadmConfigs by name.
	Configs map[string]*bootstrapv1.KubeadmConfig
	// Secrets of the cluster that exist. Kubeconfig is the content of the kubeconfig Secret.
	Secrets    secrets.Secrets
	Kubeconfig secrets.Kubeconfig
	// Workload is the latest state of the workload cluster. Fresh is true if it was read in this reconciliation.
	Workload controlplaneworkload.State
	Fresh    bool
	// Etcd maps Machines to the etcd members that were read ([snapshot.compared]).
	Etcd controlplaneworkload.MemberMatching
	// KubeadmObjects contains the objects created by kubeadm in the workload cluster. The zero value means that they
	// were never read, or changed since.
	KubeadmObjects addons.KubeadmState
	// Connection to the workload cluster.
	Connection slipwayworkload.Health
	// Random parts for names of new Machines, and the names made of them that are already taken.
	Random, Taken []string
	// The following fields are derived from the others in [snapshot.compared], once per reconciliation.

	// Certificates is the state of the Secrets.
	Certificates secrets.Evaluation
	// Members are the Machines with the state that decisions about them depend on.
	Members []memberMachine
	// Recovery is the state of a recovery from the loss of the etcd quorum.
	Recovery recoveryState
	// Remediation is the decision about unhealthy Machines.
	Remediation remediationDecision
	// Written are the Machines that this plan writes ([snapshot.withWrites]).
	Written map[string]bool

	// InPlace contains the extension's responses about changes of Machines, by name, if they were requested.
	InPlace map[string]inplace.UpdateCheck
}

// compared returns the snapshot with the fields that are derived from comparing Machines and Secrets with their
// desired state.
func (s snapshot) compared() snapshot {
	first := len(s.Machines) == 0 && len(s.Created) == 0 && !s.isInitialized()
	s.Certificates = secrets.Evaluate(secrets.EvaluateInput{Now: s.Now, Cluster: s.Cluster.Name, Required: s.required(), Found: s.Secrets, Generate: first})
	return s.withMembers()
}

const (
	controlPlaneKind = "KubeadmControlPlane"
	machineKind      = "Machine"
	configKind       = "KubeadmConfig"
	clusterKind      = "Cluster"
)

// spareNames is the number of additional random parts, in case names are taken.
const spareNames = 8

// observe reads the objects of the management cluster. The driver of package reconciler calls it at the start of each
// reconciliation. The state of the workload cluster comes from the cache of the last read; decide requests another read
// if it is due.
func (c *controller) observe(ctx context.Context, plane *controlplanev1.KubeadmControlPlane) (snapshot, error) {
	s := snapshot{Now: c.now(), Settings: c.settings, ControlPlane: plane, Verified: c.verified.Has(plane), Workload: c.states.Get(plane.UID), KubeadmObjects: c.kubeadmObjects.Get(plane.UID),
		Configs: map[string]*bootstrapv1.KubeadmConfig{}}
	if err := c.readCluster(ctx, &s); err != nil || s.Cluster == nil {
		return s, err
	}
	steps := []func(context.Context, *snapshot) error{c.readMachines, c.readTemplate, c.readClones, c.readConfigs, c.readSecrets, c.readWorkers}
	for _, step := range steps {
		if err := step(ctx, &s); err != nil {
			return s, err
		}
	}
	if !s.Verified && len(s.Created) == 0 && s.machinesState().IsUpToDate() {
		c.verified.Add(plane)
		s.Verified = true
	}
	s.Connection = c.workloads.Health(client.ObjectKeyFromObject(s.Cluster))
	for range 1 + spareNames {
		s.Random = append(s.Random, naming.Random(c.intn))
	}
	s = s.compared()
	if len(s.Machines)+len(s.Created) >= desired(s) && !slices.ContainsFunc(s.Members, memberMachine.isOutdated) {
		return s, nil // no Machine will be created
	}
	names, err := newNames(plane, s.Cluster.Name, s.Random, nil)
	if err != nil {
		return s, nil // reported by [decide]
	}
	s.Taken, err = machines.ExistingNames(ctx, c.client, plane.Namespace, names)
	return s, err
}

func (c *controller) readCluster(ctx context.Context, s *snapshot) (err error) {
	if name := clusterName(s.ControlPlane); name != "" {
		s.Cluster, err = kube.GetCluster(ctx, c.client, client.ObjectKey{Namespace: s.ControlPlane.Namespace, Name: name})
	}
	return err
}

// clusterName returns the name of the Cluster that owns the control plane, or the empty string.
func clusterName(plane client.Object) string {
	for _, ref := range plane.GetOwnerReferences() {
		if ref.Kind == clusterKind && strings.HasPrefix(ref.APIVersion, clusterv1.GroupVersion.Group+"/") {
			return ref.Name
		}
	}
	return ""
}

// readMachines lists the control plane Machines of the Cluster.
func (c *controller) readMachines(ctx context.Context, s *snapshot) (err error) {
	all := &clusterv1.MachineList{}
	err = c.client.List(ctx, all, client.InNamespace(s.ControlPlane.Namespace), client.MatchingFields{byCluster: s.Cluster.Name},
		client.HasLabels{clusterv1.MachineControlPlaneLabel}, client.UnsafeDisableDeepCopy) // snapshots are read-only
	if err != nil {
		return fmt.Errorf("listing Machines of Cluster %s: %w", s.Cluster.Name, err)
	}
	slices.SortFunc(all.Items, func(a, b clusterv1.Machine) int { return strings.Compare(a.Name, b.Name) })
	for i := range all.Items {
		m := &all.Items[i]
		switch ownership.ControllerOfChild(m, controlPlaneKind, s.ControlPlane) {
		case ownership.ThisController:
			s.Machines = append(s.Machines, machines.OwnedMachine{Machine: m, Deleted: !m.DeletionTimestamp.IsZero(), Stale: c.writer.Writes().Stale(m)})
		case ownership.NoController:
			if m.DeletionTimestamp.IsZero() {
				s.Adoptable = append(s.Adoptable, m)
			}
		}
	}
	if s.Created, err = c.pending.Settle(ctx, c.live, s.ControlPlane, s.Machines, s.Now); err != nil {
		return err
	}
	if len(s.Machines) == int(ptr.Deref(s.ControlPlane.Spec.Replicas, 1)) {
		return nil
	}
	s.Hidden, err = c.scope.Hidden(ctx, clusterv1.GroupVersion.WithKind(machineKind), client.ObjectKeyFromObject(s.Cluster), func(m client.Object) bool {
		return metav1.IsControlledBy(m, s.ControlPlane)
	})
	return err
}

func (c *controller) readTemplate(ctx context.Context, s *snapshot) error {
	templates, err := clone.ReadTemplates(ctx, c.templates, s.ControlPlane, s.ControlPlane.Spec.MachineTemplate.Spec.InfrastructureRef)
	if err == nil {
		s.Infra = templates[0]
	}
	return err
}

func (c *controller) readClones(ctx context.Context, s *snapshot) (err error) {
	s.Clones, err = clone.Reader{References: c.clones, Writes: c.writer.Writes()}.Read(ctx, s.clones())
	return err
}

func (c *controller) readConfigs(ctx context.Context, s *snapshot) error {
	for _, m := range s.Machines {
		ref := m.Spec.Bootstrap.ConfigRef
		if ref.Kind != configKind {
			continue
		}
		config := &bootstrapv1.KubeadmConfig{}
		err := c.client.Get(ctx, client.ObjectKey{Namespace: s.ControlPlane.Namespace, Name: ref.Name}, config, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading KubeadmConfig %s: %w", ref.Name, err)
		}
		s.Configs[ref.Name] = config
	}
	return nil
}

// readSecrets reads the Secrets from the cache, or from the API server if the cache does not contain them, which may
// be the case for Secrets provided by users.
func (c *controller) readSecrets(ctx context.Context, s *snapshot) (err error) {
	purposes := append(secrets.Purposes(s.required()), secrets.Admin)
	s.Secrets, err = secrets.Read(ctx, client.ObjectKeyFromObject(s.Cluster), purposes, c.secrets, c.live)
	s.Kubeconfig = secrets.ParseKubeconfig(s.Secrets[secrets.Admin])
	return err
}

// readWorkers counts the worker Machines and MachinePools, because a deleted control plane waits for their deletion.
// A count from the cache is sufficient unless it is zero, which is verified with the API server. Once the first
// control plane Machine is being deleted, the workers are no longer counted.
func (c *controller) readWorkers(ctx context.Context, s *snapshot) (err error) {
	if s.ControlPlane.DeletionTimestamp.IsZero() || slices.ContainsFunc(s.Machines, func(m machines.OwnedMachine) bool { return m.Deleted }) {
		return nil
	}
	s.Workers, err = c.workers.Count(ctx, client.ObjectKeyFromObject(s.Cluster))
	return err
}

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

	"github.com/slipwayhq/slipway/internal/authority"
	"github.com/slipwayhq/slipway/internal/inplace"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/naming"
	"github.com/slipwayhq/slipway/internal/ownership"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane/quorum"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane/rollout"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane/upgrade"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane/workload"
	"github.com/slipwayhq/slipway/internal/remote"
)

// Snapshot is everything that a decision about a KubeadmControlPlane looks at.
type Snapshot struct {
	Now      time.Time
	Settings Settings
	Plane    *controlplanev1.KubeadmControlPlane
	// Cluster owns the control plane; nil: none does yet, or it does not exist.
	Cluster *clusterv1.Cluster
	// Machines that the control plane controls, sorted by name.
	Machines machines.Members
	// Adoptable are control plane Machines of the Cluster without a controller; Hidden lack the watch label.
	Adoptable []*clusterv1.Machine
	Hidden    []string
	// Created are names of Machines that were created and that the cache does not show yet.
	Created []string
	// Workers is how many Machines and MachinePools of the Cluster are left beside the control plane; only read for one that is deleted.
	Workers int
	// Verified: for this generation of the control plane all Machines and clones were compared in full, and were up to date.
	Verified bool
	// Infra is the template of infrastructure machines. Clones are those of the Machines.
	Infra  clone.Template
	Clones *clone.Clones
	// Configs are the KubeadmConfigs by name.
	Configs map[string]*bootstrapv1.KubeadmConfig
	// Secrets of the cluster; those that do not exist are missing. Kubeconfig says what is in that Secret.
	Secrets    authority.Found
	Kubeconfig authority.Kubeconfig
	// Workload is what was read of the workload cluster last; Fresh: in this reconciliation.
	Workload workload.State
	Fresh    bool
	// Etcd is which of the members that were read runs on which Machine ([Snapshot.Compared]).
	Etcd quorum.Matching
	// Left is what kubeadm left in the workload cluster, as it was read last; the zero value: never, or it was changed since.
	Left upgrade.Found
	// Connection to the workload cluster.
	Connection remote.Health
	// Random parts for names of Machines, and what of the names made of them Machines have.
	Random, Taken []string
	// Reasons to replace each Machine, by name, and what there is of the Secrets: what follows from the rest and takes time ([Snapshot.Compared]).
	Reasons      map[string][]rollout.Reason
	Certificates authority.State
	// InPlace is what the extension makes of the changes of Machines, by name, as far as it was asked.
	InPlace map[string]inplace.Answer
}

// Compared returns the snapshot with Machines and Secrets compared with what is desired of them.
func (s Snapshot) Compared() Snapshot {
	first := len(s.Machines) == 0 && len(s.Created) == 0 && !s.isInitialized()
	s.Certificates = authority.Judge(authority.Check{Now: s.Now, Cluster: s.Cluster.Name, Required: s.required(), Found: s.Secrets, Generate: first})
	return s.withReasons()
}

func (s Snapshot) withReasons() Snapshot {
	s.Etcd = s.matching()
	s.Reasons = map[string][]rollout.Reason{}
	for _, m := range s.Machines {
		if why := rollout.Reasons(s.Plane, s.rolloutMachine(m.Machine), s.Now); len(why) > 0 {
			s.Reasons[m.Name] = why
		}
	}
	return s
}

const (
	planeKind   = "KubeadmControlPlane"
	machineKind = "Machine"
	configKind  = "KubeadmConfig"
	clusterKind = "Cluster"
)

// spareNames are random parts beyond the one that is needed, for names that are taken.
const spareNames = 8

func (c *Controller) observe(ctx context.Context, plane *controlplanev1.KubeadmControlPlane) (Snapshot, error) {
	s := Snapshot{Now: c.now(), Settings: c.settings, Plane: plane, Verified: c.verified.Has(plane), Workload: c.states.Get(plane.UID), Left: c.left.Get(plane.UID),
		Configs: map[string]*bootstrapv1.KubeadmConfig{}}
	if err := c.readCluster(ctx, &s); err != nil || s.Cluster == nil {
		return s, err
	}
	steps := []func(context.Context, *Snapshot) error{c.readMachines, c.readTemplate, c.readClones, c.readConfigs, c.readSecrets, c.readWorkers}
	for _, step := range steps {
		if err := step(ctx, &s); err != nil {
			return s, err
		}
	}
	if !s.Verified && len(s.Created) == 0 && s.State().IsFollowed() {
		c.verified.Add(plane)
		s.Verified = true
	}
	s.Connection = c.workloads.Health(client.ObjectKeyFromObject(s.Cluster))
	for range 1 + spareNames {
		s.Random = append(s.Random, naming.Random(c.intn))
	}
	s = s.Compared()
	if len(s.Machines)+len(s.Created) >= desired(s) && len(s.Reasons) == 0 {
		return s, nil // there will be no new one
	}
	names, err := rollout.NewNames(plane, s.Cluster.Name, s.Random, nil)
	if err != nil {
		return s, nil // [Decide] says so
	}
	s.Taken, err = machines.Taken(ctx, c.client, plane.Namespace, names)
	return s, err
}

func (c *Controller) readCluster(ctx context.Context, s *Snapshot) (err error) {
	if name := clusterName(s.Plane); name != "" {
		s.Cluster, err = kube.Cluster(ctx, c.client, client.ObjectKey{Namespace: s.Plane.Namespace, Name: name})
	}
	return err
}

// clusterName is the name of the Cluster that owns the control plane; empty without an owner.
func clusterName(plane client.Object) string {
	for _, ref := range plane.GetOwnerReferences() {
		if ref.Kind == clusterKind && strings.HasPrefix(ref.APIVersion, clusterv1.GroupVersion.Group+"/") {
			return ref.Name
		}
	}
	return ""
}

// readMachines lists the control plane Machines of the Cluster.
func (c *Controller) readMachines(ctx context.Context, s *Snapshot) (err error) {
	all := &clusterv1.MachineList{}
	err = c.client.List(ctx, all, client.InNamespace(s.Plane.Namespace), client.MatchingFields{byCluster: s.Cluster.Name},
		client.HasLabels{clusterv1.MachineControlPlaneLabel}, client.UnsafeDisableDeepCopy) // nothing in a snapshot is ever changed
	if err != nil {
		return fmt.Errorf("listing Machines of Cluster %s: %w", s.Cluster.Name, err)
	}
	slices.SortFunc(all.Items, func(a, b clusterv1.Machine) int { return strings.Compare(a.Name, b.Name) })
	for i := range all.Items {
		m := &all.Items[i]
		switch ownership.ControllerOfChild(m, planeKind, s.Plane) {
		case ownership.Self:
			s.Machines = append(s.Machines, machines.Member{Machine: m, Deleted: !m.DeletionTimestamp.IsZero(), Stale: c.writer.Writes().Stale(m)})
		case ownership.Nobody:
			if m.DeletionTimestamp.IsZero() {
				s.Adoptable = append(s.Adoptable, m)
			}
		}
	}
	if s.Created, err = c.pending.Settle(ctx, c.live, s.Plane, s.Machines, s.Now); err != nil {
		return err
	}
	if len(s.Machines) == int(ptr.Deref(s.Plane.Spec.Replicas, 1)) {
		return nil
	}
	s.Hidden, err = c.scope.Hidden(ctx, clusterv1.GroupVersion.WithKind(machineKind), client.ObjectKeyFromObject(s.Cluster), func(m client.Object) bool {
		return metav1.IsControlledBy(m, s.Plane)
	})
	return err
}

func (c *Controller) readTemplate(ctx context.Context, s *Snapshot) error {
	templates, err := clone.ReadTemplates(ctx, c.templates, s.Plane, s.Plane.Spec.MachineTemplate.Spec.InfrastructureRef)
	if err == nil {
		s.Infra = templates[0]
	}
	return err
}

func (c *Controller) readClones(ctx context.Context, s *Snapshot) (err error) {
	s.Clones, err = clone.Reader{References: c.clones, Writes: c.writer.Writes()}.Read(ctx, s.clones())
	return err
}

func (c *Controller) readConfigs(ctx context.Context, s *Snapshot) error {
	for _, m := range s.Machines {
		ref := m.Spec.Bootstrap.ConfigRef
		if ref.Kind != configKind {
			continue
		}
		config := &bootstrapv1.KubeadmConfig{}
		err := c.client.Get(ctx, client.ObjectKey{Namespace: s.Plane.Namespace, Name: ref.Name}, config, client.UnsafeDisableDeepCopy)
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

// readSecrets reads them from the cache, and from the API server where the cache has none: those that users supply it may not have.
func (c *Controller) readSecrets(ctx context.Context, s *Snapshot) (err error) {
	purposes := append(authority.Purposes(s.required()), authority.Admin)
	s.Secrets, err = authority.Read(ctx, client.ObjectKeyFromObject(s.Cluster), purposes, c.secrets, c.live)
	s.Kubeconfig = authority.Inspect(s.Secrets[authority.Admin])
	return err
}

// readWorkers counts the Machines and MachinePools beside the control plane, for one that is deleted after them. That there are some is
// said by the cache; that there are none is read past it, until the first Machine of the control plane is being deleted.
func (c *Controller) readWorkers(ctx context.Context, s *Snapshot) (err error) {
	if s.Plane.DeletionTimestamp.IsZero() || slices.ContainsFunc(s.Machines, func(m machines.Member) bool { return m.Deleted }) {
		return nil
	}
	s.Workers, err = c.workers.Of(ctx, client.ObjectKeyFromObject(s.Cluster))
	return err
}

package machines

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/bundle"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/jobs"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// snapshot is the input of decide.
type snapshot struct {
	Object *infrav1.SSHMachine
	// Machine that owns the object. Nil if there is none (yet).
	Machine *clusterv1.Machine
	// Cluster of the machine. Nil if it does not exist (yet).
	Cluster *clusterv1.Cluster
	// SSHCluster of a control plane machine that is not a node yet. Nil if there is none.
	SSHCluster *infrav1.SSHCluster
	// Host is the SSHHost with the claim of the machine. Nil: there is none. A released host counts only while the machine is
	// being deleted, because a machine that is not uses another one.
	Host *infrav1.SSHHost
	// Surplus are further hosts with the claim, as after a restore of some objects. Their claims are dropped.
	Surplus []*infrav1.SSHHost
	// Recorded are the hosts without a claim that have the record of the machine.
	Recorded []*infrav1.SSHHost
	// Stale is set if the cache does not have the last claim of this controller yet.
	Stale bool
	// Namespace of the machine. Hosts are all SSHHosts, and Peers those of the cluster's other machines; they are read only for
	// machines that are not nodes yet.
	Namespace    inventory.Namespace
	Hosts, Peers []*infrav1.SSHHost
	// Turn is the number of machines that precede this one in the choice of a host.
	Turn int
	// Bundle for the machine and NoBundle, why there is none. Both are unset without a host or for spec.bundle None.
	Bundle   bundle.Bundle
	NoBundle *fault.Fault
	// Preparing is the state of the job that prepares the host.
	Preparing jobs.State
	// Rejected is the bootstrap data that cannot be used. Nil: none was rejected.
	Rejected *rejection
	// Progress of the bootstrap. Nil until it has been read.
	Progress *remote.Progress
	// Fault is the error of the connection. Nil: there was none.
	Fault *fault.Fault
	Now   time.Time
}

// observe reads the snapshot. The driver (package reconciler) calls it at the start of each reconciliation.
func (c *controller) observe(ctx context.Context, o *infrav1.SSHMachine) (snapshot, error) {
	s := snapshot{Object: o, Now: c.now(), Preparing: c.Jobs.State(jobs.Key(kind, client.ObjectKeyFromObject(o))), Rejected: c.rejected.get(o)}
	var err error
	if s.Machine, err = infrastructure.ReadObject(ctx, c.client, o.Namespace, infrastructure.OwnerName(o, "Machine"), &clusterv1.Machine{}); err != nil {
		return s, err
	}
	if s.Cluster, err = infrastructure.ReadObject(ctx, c.client, o.Namespace, s.clusterName(), &clusterv1.Cluster{}); err != nil {
		return s, err
	}
	if err := c.readClaimed(ctx, &s); err != nil {
		return s, err
	}
	if s.Host != nil {
		c.findBundle(&s)
	}
	if s.Host != nil && (s.isProvisioned() || !o.DeletionTimestamp.IsZero()) {
		return s, nil
	}
	if s.SSHCluster, err = c.readSSHCluster(ctx, s); err != nil {
		return s, err
	}
	return s, c.readHosts(ctx, &s)
}

// readSSHCluster reads the infrastructure of the Cluster of a control plane machine.
func (c *controller) readSSHCluster(ctx context.Context, s snapshot) (*infrav1.SSHCluster, error) {
	if s.Cluster == nil || !s.isControlPlane() {
		return nil, nil
	}
	ref := s.Cluster.Spec.InfrastructureRef
	if ref.Kind != "SSHCluster" || ref.APIGroup != infrav1.GroupVersion.Group {
		return nil, nil
	}
	return infrastructure.ReadObject(ctx, c.client, s.Object.Namespace, ref.Name, &infrav1.SSHCluster{})
}

// readClaimed reads the hosts that have the claim or the record of the machine. A host that it has released is not its host any
// more: the controller of SSHHosts cleans it.
func (c *controller) readClaimed(ctx context.Context, s *snapshot) error {
	if s.Object.Spec.ClaimID == "" {
		return nil
	}
	list := &infrav1.SSHHostList{}
	if err := c.client.List(ctx, list, client.MatchingFields{claimIndex: s.Object.Spec.ClaimID}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing SSHHosts: %w", err)
	}
	var claimed, released []*infrav1.SSHHost
	for i := range list.Items {
		switch h := &list.Items[i]; {
		case inventory.HasClaim(h, s.Object):
			s.Stale = s.Stale || c.writer.Writes().Stale(h)
			if inventory.IsReleased(h.Status.Claim) {
				released = append(released, h)
			} else {
				claimed = append(claimed, h)
			}
		case inventory.HasRecord(h, s.Object) && !slices.Contains(s.unsuitable(), reference(h)):
			s.Recorded = append(s.Recorded, h)
		}
	}
	slices.SortFunc(claimed, compareClaims)
	slices.SortFunc(released, compareClaims)
	switch {
	case len(claimed) > 0:
		s.Host, s.Surplus = claimed[0], claimed[1:]
	case len(released) > 0 && !s.Object.DeletionTimestamp.IsZero():
		s.Host = released[0] // the deletion waits until it is clean
	}
	return nil
}

func reference(h *infrav1.SSHHost) infrav1.SSHHostReference {
	return infrav1.SSHHostReference{Namespace: h.Namespace, Name: h.Name}
}

// unsuitable returns the hosts that the machine has released a short time ago because it cannot use them.
func (s snapshot) unsuitable() (out []infrav1.SSHHostReference) {
	for _, u := range s.Object.Status.UnsuitableHosts {
		if s.isUnsuitable(u) {
			out = append(out, u.SSHHostReference)
		}
	}
	return out
}

func (s snapshot) isUnsuitable(u infrav1.SSHUnsuitableHost) bool {
	return s.Now.Sub(u.Since.Time) < unsuitableFor
}

// compareClaims orders hosts with the same claim: the one that has its record is first.
func compareClaims(a, b *infrav1.SSHHost) int {
	switch x, y := inventory.IsConfirmed(a), inventory.IsConfirmed(b); {
	case x && !y:
		return -1
	case y && !x:
		return 1
	}
	return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
}

// readHosts reads what the choice of a host needs.
func (c *controller) readHosts(ctx context.Context, s *snapshot) error {
	request, all, err := inventory.Read(ctx, c.client, s.Object.Namespace)
	if err != nil {
		return err
	}
	s.Namespace, s.Hosts = request.Namespace, all
	peers := &infrav1.SSHMachineList{}
	cluster := client.ObjectKey{Namespace: s.Object.Namespace, Name: s.clusterName()}
	if err := c.client.List(ctx, peers, watches.InCluster(Name, cluster)...); err != nil {
		return fmt.Errorf("listing SSHMachines of Cluster %s: %w", cluster, err)
	}
	for _, h := range all {
		s.Stale = s.Stale || s.Host == nil && c.writer.Writes().Stale(h)
	}
	s.Peers, s.Turn = inventory.AmongPeers(s.Object, peers.Items, all)
	return nil
}

// findBundle finds the bundle for a host that is not a node yet.
func (c *controller) findBundle(s *snapshot) {
	if s.isProvisioned() || s.Object.Spec.Bundle == infrav1.SSHBundleNone || s.version() == "" || s.Host.Status.Facts.Architecture == "" {
		return
	}
	architecture := s.Host.Status.Facts.Architecture
	b, err := c.Bundles.Find(s.version(), architecture)
	if err != nil {
		s.NoBundle = noBundle(err, s.version(), architecture)
		return
	}
	s.Bundle = b.ForNode(s.isControlPlane())
}

// noBundle returns why there is no bundle, for users who may not know the directories of the manager.
func noBundle(err error, version, architecture string) *fault.Fault {
	const remedy = "let the operator build it again with \"slipway bundle build\", or import it"
	switch f := fault.As(err); {
	case f == nil:
		return fault.New(fault.Transient, "BundleNotReadable", "the bundle for Kubernetes %s on %s cannot be read: %s", version, architecture, remedy).From(err)
	case f.Reason == bundle.ReasonInvalid:
		return fault.New(f.Kind, f.Reason, "the bundle for Kubernetes %s on %s is damaged: %s", version, architecture, remedy).From(err)
	default:
		return f
	}
}

// readRequested reads the progress of the bootstrap. The driver calls it if decide requests a read, and then decide
// again.
func (c *controller) readRequested(ctx context.Context, s snapshot, _ reconciler.ReadRequest) (snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, progressTimeout)
	defer cancel()
	var p remote.Progress
	h, err := c.connect(ctx, s.Host)
	if err == nil {
		p, err = h.BootstrapProgress(ctx, s.Object.Spec.ClaimID)
	}
	if err == nil {
		p, err = c.maskSecrets(ctx, s, p)
	}
	if err = inventory.Neutral(s.Host, err); err != nil {
		if s.Fault = fault.As(err); s.Fault != nil {
			err = nil
		}
		return s, err
	}
	s.Progress = &p
	return s, nil
}

// progressTimeout limits the time of a reconciliation that reads the progress.
const progressTimeout = 30 * time.Second

// connect connects to the host of an object. The error is for the users of the SSHMachine.
func (c *controller) connect(ctx context.Context, h *infrav1.SSHHost) (Host, error) {
	return c.connectFor(ctx, h, "")
}

// connectFor connects to a host that is changed for a claim.
func (c *controller) connectFor(ctx context.Context, h *infrav1.SSHHost, claimID string) (Host, error) {
	target, err := inventory.Target(ctx, c.secrets, h, c.Policy)
	var host Host
	if err == nil {
		target.ClaimID = claimID
		host, err = c.Connector.Connect(ctx, target)
	}
	return host, inventory.NeutralTarget(h, err)
}

// request describes the host that the machine needs.
func (s snapshot) request() inventory.Request {
	r := RequestOf(s.Object, s.Machine)
	r.Namespace, r.Peers, r.Turn, r.Unsuitable = s.Namespace, s.Peers, s.Turn, s.unsuitable()
	return r
}

// RequestOf describes the host that an SSHMachine of a Machine needs, without what depends on other objects. The controller and
// the simulation of `slipway plan` use it.
func RequestOf(o *infrav1.SSHMachine, m *clusterv1.Machine) inventory.Request {
	s := snapshot{Object: o, Machine: m}
	return inventory.Request{
		Selector: o.Spec.HostSelector, FailureDomain: s.failureDomain(), Version: s.version(),
		Installed: o.Spec.Bundle == infrav1.SSHBundleNone, ControlPlane: s.isControlPlane(),
	}
}

func (s snapshot) clusterName() string { return s.Object.Labels[clusterv1.ClusterNameLabel] }

// isProvisioned reports whether the machine has ever been provisioned.
func (s snapshot) isProvisioned() bool {
	return ptr.Deref(s.Object.Status.Initialization.Provisioned, false)
}

// wasProvisioned reports whether the machine was provisioned before its status was lost, as in a restore: the core copies
// the provider ID only then.
func (s snapshot) wasProvisioned() bool {
	return s.isProvisioned() || s.Machine != nil && s.Machine.Spec.ProviderID != ""
}

// bootstrapSecretName returns the name of the bootstrap data Secret, empty if there is none.
func (s snapshot) bootstrapSecretName() string {
	if s.Machine == nil {
		return ""
	}
	return ptr.Deref(s.Machine.Spec.Bootstrap.DataSecretName, "")
}

// version returns the requested Kubernetes version, empty if there is none.
func (s snapshot) version() string {
	if s.Machine == nil {
		return ""
	}
	return s.Machine.Spec.Version
}

// isControlPlane reports whether the machine runs a control plane.
func (s snapshot) isControlPlane() bool {
	if s.Machine == nil {
		return false
	}
	_, ok := s.Machine.Labels[clusterv1.MachineControlPlaneLabel]
	return ok
}

// failureDomain returns the failure domain that the host must be in, empty for any.
func (s snapshot) failureDomain() string {
	if s.Machine != nil && s.Machine.Spec.FailureDomain != "" {
		return s.Machine.Spec.FailureDomain
	}
	return s.Object.Spec.FailureDomain
}

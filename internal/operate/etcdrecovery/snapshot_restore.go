package etcdrecovery

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hosted"
	"github.com/slipwayhq/slipway/internal/kube"
)

// Restore is the restore of a HostedControlPlane from an etcd snapshot, with the data that it loses. `slipway restore
// controlplane` shows it before it calls [SnapshotClient.Run].
type Restore struct {
	Snapshot
	ControlPlane string `json:"controlPlane"`
	// Age is the age of the snapshot. All data written since then is lost.
	Age time.Duration `json:"-"`
	// NewerMachines are the Machines created after the snapshot, whose Nodes are not in it.
	NewerMachines []string `json:"machinesSince,omitempty"`
	// IdentitySecret is the Secret with the age identity. OtherCluster allows a snapshot of a Cluster with another UID.
	IdentitySecret string `json:"identitySecret,omitempty"`
	OtherCluster   bool   `json:"otherCluster,omitempty"`

	key client.ObjectKey
}

// RestoreOptions selects the snapshot to restore, and the options of the restore. `slipway restore controlplane` fills
// it in from its flags.
type RestoreOptions struct {
	// Name is the snapshot; empty for the newest. Policy is the policy that stores it; empty for any policy that lists
	// it.
	Name, Policy   string
	IdentitySecret string
	OtherCluster   bool
}

// Prepare finds the control plane of a Cluster and the snapshot, and returns the data that a restore would lose. It
// changes nothing. `slipway restore controlplane` calls it before the confirmation.
func (o SnapshotClient) Prepare(ctx context.Context, cluster *clusterv1.Cluster, want RestoreOptions) (Restore, error) {
	ref := cluster.Spec.ControlPlaneRef
	if ref.Kind == "KubeadmControlPlane" {
		return Restore{}, fault.New(fault.Invalid, reasonUnsupported,
			"cluster %[1]q has a control plane on machines: `slipway recover controlplane %[1]s --snapshot NAME` restores it, on one machine, and replaces the others", cluster.Name)
	}
	if ref.Kind != "HostedControlPlane" || ref.APIGroup != hostedv1.GroupVersion.Group {
		return Restore{}, fault.New(fault.Invalid, reasonUnsupported,
			"cluster %q has a control plane of kind %s, and only a HostedControlPlane, or a KubeadmControlPlane with `slipway recover controlplane`, is restored", cluster.Name, ref.Kind)
	}
	plane := &hostedv1.HostedControlPlane{}
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: ref.Name}
	if err := o.Client.Get(ctx, key, plane); err != nil {
		return Restore{}, fmt.Errorf("reading HostedControlPlane %s: %w", ref.Name, err)
	}
	if asked, ok := plane.Annotations[hostedv1.RestoreAnnotation]; ok {
		return Restore{}, fault.New(fault.Invalid, reasonBusy,
			"a restore of HostedControlPlane %s is under way: %s; wait for it, or remove annotation %s", ref.Name, asked, hostedv1.RestoreAnnotation)
	}
	found, err := o.Find(ctx, cluster, want)
	if err != nil {
		return Restore{}, err
	}
	out := Restore{Snapshot: found, ControlPlane: ref.Name, Age: o.Now().Sub(found.Time), IdentitySecret: want.IdentitySecret, OtherCluster: want.OtherCluster, key: key}
	out.NewerMachines, err = o.MachinesSince(ctx, cluster, found.Time)
	return out, err
}

// MachinesSince returns the names of the Machines of a Cluster that were created after a time. Recoverer.snapshot calls
// it as well.
func (o SnapshotClient) MachinesSince(ctx context.Context, cluster *clusterv1.Cluster, at time.Time) ([]string, error) {
	machines := &clusterv1.MachineList{}
	if err := o.Client.List(ctx, machines, client.InNamespace(cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}); err != nil {
		return nil, fmt.Errorf("listing Machines of cluster %s: %w", cluster.Name, err)
	}
	var since []string
	for _, m := range machines.Items {
		if m.CreationTimestamp.After(at) {
			since = append(since, m.Name)
		}
	}
	slices.Sort(since)
	return since, nil
}

// Find returns the selected snapshot as a policy lists it. [SnapshotClient.Prepare] calls it, and Recoverer.snapshot
// for a recovery from a snapshot.
func (o SnapshotClient) Find(ctx context.Context, cluster *clusterv1.Cluster, want RestoreOptions) (Snapshot, error) {
	found, err := o.find(ctx, cluster, want)
	if err == nil && found.Encrypted && want.IdentitySecret == "" {
		return Snapshot{}, fault.New(fault.Invalid, reasonFailed,
			"snapshot %s is encrypted: name a Secret of namespace %q with the identity of age in its key \"identity\" with --identity-secret", found.Name, cluster.Namespace)
	}
	return found, err
}

func (o SnapshotClient) find(ctx context.Context, cluster *clusterv1.Cluster, want RestoreOptions) (Snapshot, error) {
	listed, err := ListSnapshots(ctx, o.Client, cluster.Namespace, cluster.Name)
	if err != nil {
		return Snapshot{}, err
	}
	for _, s := range listed.Snapshots {
		if (want.Name == "" || s.Name == want.Name) && (want.Policy == "" || s.Policy == want.Policy) {
			return s, nil
		}
	}
	if want.Name == "" {
		return Snapshot{}, fault.New(fault.Gone, reasonNotFound, "no EtcdSnapshotPolicy lists a snapshot of cluster %q; see `slipway snapshots list %s`", cluster.Name, cluster.Name)
	}
	if taken, ok := strings.CutPrefix(want.Name, cluster.Name+"-"); ok && want.Policy != "" {
		if at, err := time.Parse(stamp, taken); err == nil { // older than the snapshots listed in the status
			return Snapshot{Cluster: cluster.Name, Policy: want.Policy, Name: want.Name, Time: at}, nil
		}
	}
	return Snapshot{}, fault.New(fault.Gone, reasonNotFound,
		"no EtcdSnapshotPolicy lists snapshot %q of cluster %q; see `slipway snapshots list %s`; for one that is older than those, name its policy with --policy", want.Name, cluster.Name, cluster.Name)
}

// NeedsConfirmation implements the plan of an operation: a restore always needs confirmation.
func (Restore) NeedsConfirmation() bool { return true }

// Lines describes the restore for the confirmation prompt.
func (r Restore) Lines() []string {
	from := fmt.Sprintf("Restore of the control plane of cluster %s from snapshot %s of EtcdSnapshotPolicy %s, taken %s (%s ago)",
		r.Cluster, r.Name, r.Policy, r.Time.UTC().Format(time.RFC3339), r.Age.Round(time.Second))
	if r.Revision > 0 {
		from += fmt.Sprintf(", revision %d", r.Revision)
	}
	lines := []string{from + ":", "  all later writes to its API are lost"}
	if len(r.NewerMachines) > 0 {
		lines = append(lines, fmt.Sprintf("  the Nodes of %d newer Machines are not in the snapshot and must join again: %s", len(r.NewerMachines), joinNames(r.NewerMachines)))
	}
	return append(lines, "  its API is not available during the restore; a copy of the current data is retained until the next restore")
}

// joinNames joins names for a message, and truncates long lists.
func joinNames(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// Run requests the restore and waits until the API server serves the data of the snapshot. `slipway restore
// controlplane` calls it after the confirmation.
func (o SnapshotClient) Run(ctx context.Context, r Restore) error {
	plane := &hostedv1.HostedControlPlane{}
	if err := o.Client.Get(ctx, r.key, plane); err != nil {
		return fmt.Errorf("reading HostedControlPlane %s: %w", r.ControlPlane, err)
	}
	asked := hosted.RestoreRequest{
		ID: o.Now().UTC().Format(stamp), Policy: r.Policy, Snapshot: r.Name, IdentitySecret: r.IdentitySecret, OtherCluster: r.OtherCluster,
	}
	value := asked.String()
	if err := kube.NewWriter(o.Client, manager).Patch(ctx, plane, func(o client.Object) { kube.Annotate(o, hostedv1.RestoreAnnotation, &value) }); err != nil {
		return fmt.Errorf("requesting a restore of HostedControlPlane %s: %w", r.ControlPlane, err)
	}
	f := restoreProgress{SnapshotClient: o, value: value, request: asked}
	return o.Follow(ctx, "the restore did not complete within --wait-timeout; it continues without this command", func(ctx context.Context) (bool, string, error) {
		now := &hostedv1.HostedControlPlane{}
		err := o.Client.Get(ctx, r.key, now)
		if apierrors.IsNotFound(err) {
			return false, "", fault.New(fault.Gone, reasonNotFound, "HostedControlPlane %s was deleted", r.ControlPlane)
		}
		if err != nil {
			return false, "", fmt.Errorf("reading HostedControlPlane %s: %w", r.ControlPlane, err)
		}
		return f.next(now)
	})
}

// restoreProgress tracks the progress of a restore.
type restoreProgress struct {
	SnapshotClient
	// value is the value of the restore annotation, and request the request in it.
	value   string
	request hosted.RestoreRequest
	// gone is the time since which the annotation is missing; zero if it is present.
	gone time.Time
}

// next reports whether the restore has finished, and the progress. It returns an error if the restore does not proceed
// or was cancelled. The HostedControlPlane controller writes the reason Restoring, and at the end the ID of the request
// into the message.
func (f *restoreProgress) next(plane *hostedv1.HostedControlPlane) (done bool, wait string, err error) {
	c := condition.Set(plane.Status.Conditions).Get(hostedv1.RestoredCondition)
	switch {
	case plane.Annotations[hostedv1.RestoreAnnotation] != f.value:
		if c != nil && c.Status == metav1.ConditionTrue && strings.Contains(c.Message, f.request.ID) {
			return true, "", nil
		}
		if f.gone.IsZero() {
			f.gone = f.Now()
		}
		if f.Now().Sub(f.gone) >= controllerGracePeriod { // the status is updated after the annotation is removed
			return false, "", fault.New(fault.Invalid, reasonFailed, "annotation %s was removed or changed before the restore was done", hostedv1.RestoreAnnotation)
		}
	case c == nil || c.Status == metav1.ConditionTrue: // not observed yet
	case c.Reason != "Restoring":
		return false, "", fault.New(fault.Invalid, reasonFailed, "the restore does not proceed: %s; to leave the control plane as it is, remove annotation %s of HostedControlPlane %s",
			c.Message, hostedv1.RestoreAnnotation, plane.Name)
	default:
		wait = c.Message
	}
	return false, wait, nil
}

package etcdrecovery

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/operate/progress"
)

const (
	// manager is the name of the field manager without its prefix.
	manager = "cli"
	// stamp is the time format in names of snapshots and IDs of restores. It must equal the one that
	// snapshots.ParseName reads.
	stamp = "20060102T150405Z"
	// controllerGracePeriod is the time for a controller to react to a request. Until then, the status of its object
	// may not reflect the request yet.
	controllerGracePeriod = 15 * time.Second
)

// SnapshotClient requests etcd snapshots and restores, and waits for them, for `slipway snapshots take` and `slipway
// restore controlplane`. The controllers of EtcdSnapshotPolicies and HostedControlPlanes do the work.
type SnapshotClient struct{ progress.Operation }

// Take requests a snapshot of a Cluster from a policy and waits until it is stored. Without a policy name it uses the
// only policy that selects the Cluster. `slipway snapshots take` calls it.
func (o SnapshotClient) Take(ctx context.Context, cluster *clusterv1.Cluster, policy string) (Snapshot, error) {
	p, err := policyFor(ctx, o.Client, cluster, policy)
	if err != nil {
		return Snapshot{}, err
	}
	if ptr.Deref(p.Spec.Suspend, false) {
		return Snapshot{}, fault.New(fault.Invalid, reasonFailed, "EtcdSnapshotPolicy %s is suspended: it takes no snapshots until its spec.suspend is false", p.Name)
	}
	if asked := p.Annotations[hostedv1.TakeSnapshotAnnotation]; asked != "" {
		return Snapshot{}, fault.New(fault.Invalid, reasonBusy, "EtcdSnapshotPolicy %s already has a request for snapshot %s; run the command again when that snapshot is stored", p.Name, asked)
	}
	r := request{cluster.Name, cluster.Name + "-" + o.Now().UTC().Format(stamp), o.Now()}
	if err := kube.NewWriter(o.Client, manager).Patch(ctx, p, func(o client.Object) {
		kube.Annotate(o, hostedv1.TakeSnapshotAnnotation, &r.name)
	}); err != nil {
		return Snapshot{}, fmt.Errorf("requesting a snapshot from EtcdSnapshotPolicy %s: %w", p.Name, err)
	}
	o.Report("Requested snapshot %s from EtcdSnapshotPolicy %s", r.name, p.Name)
	var out Snapshot
	timeout := fmt.Sprintf("snapshot %s was not taken within --wait-timeout; EtcdSnapshotPolicy %s still takes it", r.name, p.Name)
	err = o.Follow(ctx, timeout, func(ctx context.Context) (done bool, _ string, err error) {
		out, done, err = o.taken(ctx, client.ObjectKeyFromObject(p), r)
		return done, "", err
	})
	return out, err
}

// request is a request for a snapshot of a Cluster at a given time. [SnapshotClient.Take] writes its name to an
// annotation of the policy, whose controller takes the snapshot.
type request struct {
	cluster, name string
	at            time.Time
}

// taken reports whether the snapshot is stored. It returns an error if the policy gave up, or if its store is not
// available.
func (o SnapshotClient) taken(ctx context.Context, key client.ObjectKey, r request) (Snapshot, bool, error) {
	p := &hostedv1.EtcdSnapshotPolicy{}
	if err := o.Client.Get(ctx, key, p); err != nil {
		return Snapshot{}, false, fmt.Errorf("reading EtcdSnapshotPolicy %s: %w", key.Name, err)
	}
	listed := listOf([]hostedv1.EtcdSnapshotPolicy{*p}, r.cluster)
	if at := slices.IndexFunc(listed.Snapshots, func(s Snapshot) bool { return s.Name == r.name }); at >= 0 {
		return listed.Snapshots[at], true, nil
	}
	if o.Now().Sub(r.at) < controllerGracePeriod {
		return Snapshot{}, false, nil
	}
	gone := p.Annotations[hostedv1.TakeSnapshotAnnotation] != r.name
	switch why := p.Status.Conditions; {
	case gone && len(listed.Problems) > 0:
		return Snapshot{}, false, fault.New(fault.Invalid, reasonFailed, "the snapshot of cluster %q was not taken: %s", r.cluster, listed.Problems[0])
	case gone:
		return Snapshot{}, false, fault.New(fault.Invalid, reasonFailed,
			"the snapshot of cluster %q was not taken; `kubectl events --for etcdsnapshotpolicy/%s` shows the reason", r.cluster, key.Name)
	case condition.Set(why).IsFalse(hostedv1.StoreAvailableCondition):
		return Snapshot{}, false, fault.New(fault.Invalid, reasonFailed, "the store of EtcdSnapshotPolicy %s cannot be used: %s; the snapshot is taken when it can",
			key.Name, condition.Set(why).Get(hostedv1.StoreAvailableCondition).Message)
	}
	return Snapshot{}, false, nil
}

package etcdrecovery

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Reasons of faults.
const (
	// reasonNoPolicy is the reason when no EtcdSnapshotPolicy selects the Cluster; Invalid.
	reasonNoPolicy = "NoSnapshotPolicy"
	// reasonAmbiguous is the reason when several policies select the Cluster and none was named; Invalid.
	reasonAmbiguous = "SeveralSnapshotPolicies"
	// reasonNotFound is the reason when the snapshot or Cluster does not exist; Gone.
	reasonNotFound = "NotFound"
	// reasonFailed is the reason when a snapshot or restore failed; Invalid.
	reasonFailed = "SnapshotFailed"
	// reasonUnsupported is the reason when control planes of this kind cannot be restored; Invalid.
	reasonUnsupported = "RestoreUnsupported"
	// reasonBusy is the reason when another snapshot or restore is in progress; Invalid.
	reasonBusy = "RestoreUnderway"
)

// Snapshot is a snapshot listed in the status of a policy. [ListSnapshots] returns it, and `slipway snapshots list`
// prints it as JSON, so the field names must not change.
type Snapshot struct {
	Cluster   string    `json:"cluster"`
	Policy    string    `json:"policy"`
	Name      string    `json:"name"`
	Time      time.Time `json:"time"`
	Revision  int64     `json:"revision,omitempty"`
	Bytes     int64     `json:"bytes"`
	Version   string    `json:"version,omitempty"`
	Encrypted bool      `json:"encrypted,omitempty"`
}

// SnapshotList has the snapshots in the status of the policies of a namespace, which `slipway snapshots list` shows,
// also as JSON.
type SnapshotList struct {
	Snapshots []Snapshot `json:"snapshots"`
	// More is the number of further snapshots in the stores.
	More int32 `json:"more,omitempty"`
	// Problems explain for which Clusters snapshots are missing, and why.
	Problems []string `json:"problems,omitempty"`
}

// ListSnapshots returns the snapshots of one Cluster or of all Clusters in a namespace, newest first. `slipway
// snapshots list` calls it, and [SnapshotClient.Prepare] finds a snapshot in the result.
func ListSnapshots(ctx context.Context, c client.Client, namespace, cluster string) (SnapshotList, error) {
	policies, err := policiesOf(ctx, c, namespace)
	if err != nil {
		return SnapshotList{}, err
	}
	return listOf(policies, cluster), nil
}

// listOf returns the snapshots in the status of the policies, for one Cluster or for all.
func listOf(policies []hostedv1.EtcdSnapshotPolicy, cluster string) SnapshotList {
	out := SnapshotList{Snapshots: []Snapshot{}}
	for _, p := range policies {
		for _, of := range p.Status.Clusters {
			if cluster != "" && of.Name != cluster {
				continue
			}
			for _, s := range of.Snapshots {
				out.Snapshots = append(out.Snapshots, Snapshot{
					Cluster: of.Name, Policy: p.Name, Name: s.Name, Time: s.Time.UTC(), Revision: s.Revision, Bytes: s.Bytes,
					Version: s.Version, Encrypted: ptr.Deref(s.Encrypted, false),
				})
			}
			out.More += max(0, of.Count-int32(len(of.Snapshots)))
			if of.Message != "" {
				out.Problems = append(out.Problems, fmt.Sprintf("EtcdSnapshotPolicy %s, Cluster %s: %s", p.Name, of.Name, of.Message))
			}
		}
	}
	slices.SortStableFunc(out.Snapshots, func(a, b Snapshot) int { return b.Time.Compare(a.Time) })
	return out
}

func policiesOf(ctx context.Context, c client.Client, namespace string) ([]hostedv1.EtcdSnapshotPolicy, error) {
	all := &hostedv1.EtcdSnapshotPolicyList{}
	if err := c.List(ctx, all, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing EtcdSnapshotPolicies of namespace %s: %w", namespace, err)
	}
	return all.Items, nil
}

// policyFor returns the policy for a Cluster: the named policy, or the only one that selects the Cluster.
// [SnapshotClient.Take] calls it.
func policyFor(ctx context.Context, c client.Client, cluster *clusterv1.Cluster, named string) (*hostedv1.EtcdSnapshotPolicy, error) {
	all, err := policiesOf(ctx, c, cluster.Namespace)
	if err != nil {
		return nil, err
	}
	var names []string
	var found *hostedv1.EtcdSnapshotPolicy
	for i := range all {
		if p := &all[i]; selects(p, cluster) && (named == "" || p.Name == named) {
			found, names = p, append(names, p.Name)
		}
	}
	switch {
	case len(names) == 1:
		return found, nil
	case len(names) > 1:
		return nil, fault.New(fault.Invalid, reasonAmbiguous, "the EtcdSnapshotPolicies %s all select cluster %q; select one with --policy", strings.Join(names, ", "), cluster.Name)
	case named != "":
		return nil, fault.New(fault.Invalid, reasonNoPolicy, "EtcdSnapshotPolicy %q does not exist in namespace %q, or does not select cluster %q", named, cluster.Namespace, cluster.Name)
	}
	return nil, fault.New(fault.Invalid, reasonNoPolicy,
		"no EtcdSnapshotPolicy of namespace %q selects cluster %q; create one: `slipway docs etcd-snapshots` describes how", cluster.Namespace, cluster.Name)
}

// selects reports whether a policy takes snapshots of a Cluster.
func selects(p *hostedv1.EtcdSnapshotPolicy, cluster *clusterv1.Cluster) bool {
	if p.Spec.ClusterSelector == nil {
		return p.Spec.ClusterName == cluster.Name
	}
	selector, err := metav1.LabelSelectorAsSelector(p.Spec.ClusterSelector)
	return err == nil && selector.Matches(labels.Set(cluster.Labels))
}

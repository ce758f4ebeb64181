package workload

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipwayhq/slipway/internal/kubeadm/etcd"
	"github.com/slipwayhq/slipway/internal/workload"
)

// State is the observed state of a workload cluster, as [Reader.Read] returns it. The KubeadmControlPlane controller
// caches it between reads ([StateCache]) and computes conditions and decisions from it. The zero value means that the
// cluster was never read.
type State struct {
	// At is the time of the read, or zero.
	At time.Time
	// Problem is the reason why the cluster could not be read, or empty.
	Problem string
	// FailingSince is the time of the first failed read after the last successful one.
	FailingSince time.Time
	// Initialized is true if kubeadm has stored its configuration, so that nodes can join.
	Initialized bool
	// ReadNodes contains the names of the Nodes that were read, including missing ones.
	ReadNodes map[string]bool
	// Nodes and Pods by name. Pods contains the control plane Pods in kube-system.
	Nodes map[string]*corev1.Node
	Pods  map[string]*corev1.Pod
	// Expiry contains the expiration of API server certificates by Node, for the requested servers that responded.
	Expiry map[string]time.Time
	// Etcd is the state of the etcd members.
	Etcd Etcd
}

// probeInterval is the minimum interval between two probes of a connection.
const probeInterval = 10 * time.Second

// IsBehind reports whether later probes of the connection contradict the state: a probe failed, or a probe of an
// unreadable cluster succeeded. The cluster is then read again immediately, which permits a longer interval
// otherwise.
func (s State) IsBehind(c workload.Health) bool {
	if s.Problem != "" {
		return c.IsHealthy() && c.LastProbeSuccess.After(s.At)
	}
	return c.ConsecutiveFailures > 0 && s.At.Before(c.LastProbeSuccess.Add(probeInterval))
}

// Merge returns the state after another read. If the read failed, the previous data is retained. The
// KubeadmControlPlane controller calls it after each read, and caches the result.
func (s State) Merge(read State) State {
	if read.Problem == "" {
		return read
	}
	if s.Problem == "" {
		s.FailingSince = read.At
	}
	if s.At.IsZero() {
		read.FailingSince = s.FailingSince
		return read
	}
	s.At, s.Problem = read.At, read.Problem
	return s
}

// IsDown reports whether reads have failed for longer than the grace period. The period starts with the last successful
// probe or, if the probes succeed, with the first failed read. The conditions of all components are Unknown then. The
// KubeadmControlPlane controller calls it for the conditions.
func (s State) IsDown(now time.Time, c workload.Health, grace time.Duration) bool {
	if s.Problem == "" {
		return false
	}
	if c.IsHealthy() {
		return now.Sub(s.FailingSince) >= grace
	}
	return c.GraceLeft(now, grace, true) == 0
}

// Etcd is the state of the etcd members. [Reader.Read] fills it in.
type Etcd struct {
	// Problem is the reason why the list of members is unknown, or empty.
	Problem string
	// Members of the cluster as agreed on by its quorum.
	Members []etcd.Member
	// Statuses contains the status of each member by Node.
	Statuses map[string]EtcdStatus
}

// EtcdStatus is the status of a member, or the reason why it does not respond.
type EtcdStatus struct {
	etcd.Status
	Problem string
}

// Member returns the member on a Node, or false if there is none. [Reader.Read] skips Nodes without a member.
func (e Etcd) Member(node string) (etcd.Member, bool) {
	for _, m := range e.Members {
		if m.Name == node {
			return m, true
		}
	}
	return etcd.Member{}, false
}

// isTorn reports whether a responding member knows other members than the list contains, because the membership
// changed during the read or the members disagree. [Reader.Read] repeats the read then.
func (e Etcd) isTorn() bool {
	for _, s := range e.Statuses {
		if len(s.Members) > 0 && !sameMembers(s.Members, e.Members) {
			return true
		}
	}
	return false
}

func sameMembers(a, b []etcd.Member) bool {
	ids := func(ms []etcd.Member) []uint64 {
		var out []uint64
		for _, m := range ms {
			out = append(out, m.ID)
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(ids(a), ids(b))
}

// Leader returns the Node of the leader as seen by the members, or the empty string if unknown.
func (e Etcd) Leader() string {
	for _, node := range slices.Sorted(maps.Keys(e.Statuses)) { // members may disagree for a moment
		s := e.Statuses[node]
		if s.Problem != "" || s.Leader == 0 {
			continue
		}
		for _, m := range e.Members {
			if m.ID == s.Leader {
				return m.Name
			}
		}
	}
	return ""
}

// The components of a control plane. kubeadm names their static Pods <component>-<node>.
const (
	apiServerPod         = "kube-apiserver"
	controllerManagerPod = "kube-controller-manager"
	schedulerPod         = "kube-scheduler"
	etcdPod              = "etcd"
)

// PodOf returns the static Pod of a component on a Node, or nil if it does not exist. The conditions, [MatchMembers]
// and [Reader.Read] call it.
func (s State) PodOf(component, node string) *corev1.Pod { return s.Pods[component+"-"+node] }

// ClusterID returns the cluster ID that most members report, or 0.
func (e Etcd) ClusterID() uint64 {
	count, most := map[uint64]int{}, uint64(0)
	for _, node := range slices.Sorted(maps.Keys(e.Statuses)) {
		s := e.Statuses[node]
		if s.Problem != "" {
			continue
		}
		if count[s.ClusterID]++; count[s.ClusterID] > count[most] {
			most = s.ClusterID
		}
	}
	return most
}

// configName is the ConfigMap that kubeadm init creates once the API server runs. As in the reference implementation,
// its existence means that the cluster is initialized.
const configName = "kubeadm-config"

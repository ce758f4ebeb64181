package workload

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipwayhq/slipway/internal/etcd"
	"github.com/slipwayhq/slipway/internal/remote"
)

// State is what was read of a workload cluster at one time. The zero value is that of a cluster that was never read.
type State struct {
	// At is when it was read; zero: never.
	At time.Time
	// Problem says why nothing could be read; empty: it could.
	Problem string
	// FailingSince is when it could not be read for the first time since it was read last.
	FailingSince time.Time
	// Initialized: kubeadm has left its configuration, so that nodes can join.
	Initialized bool
	// Asked are the names of the Nodes that were read, whether they exist or not.
	Asked map[string]bool
	// Nodes and Pods by name; the Pods are those of the control plane in kube-system.
	Nodes map[string]*corev1.Node
	Pods  map[string]*corev1.Pod
	// Expiry by Node is when the certificate of its API server expires; only of those that were asked for and answered.
	Expiry map[string]time.Time
	// Etcd is what its members say.
	Etcd Etcd
}

// probeInterval is at least the time between two probes of a connection.
const probeInterval = 10 * time.Second

// IsBehind reports whether the probes of the connection have said something since that speaks against what was read: one failed, or
// one was answered of a cluster that could not be read. It is read again at once then, and needs no short interval otherwise.
func (s State) IsBehind(c remote.Health) bool {
	if s.Problem != "" {
		return c.Good() && c.LastProbeSuccess.After(s.At)
	}
	return c.ConsecutiveFailures > 0 && s.At.Before(c.LastProbeSuccess.Add(probeInterval))
}

// Then is what is known after another reading: where that came to nothing, what was read before.
func (s State) Then(read State) State {
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

// IsDown reports whether it could not be read for longer than the grace period, which begins with the last probe that was answered, or
// where all are, with the first reading that failed.
func (s State) IsDown(now time.Time, c remote.Health, grace time.Duration) bool {
	if s.Problem == "" {
		return false
	}
	if c.Good() {
		return now.Sub(s.FailingSince) >= grace
	}
	return c.GraceLeft(now, grace, true) == 0
}

// Etcd is what the members of etcd say.
type Etcd struct {
	// Problem says why the list of members is not known; empty: it is.
	Problem string
	// Members of the cluster, as its quorum agrees on them.
	Members []etcd.Member
	// Statuses by Node of what each member says of itself.
	Statuses map[string]EtcdStatus
}

// EtcdStatus is what a member says of itself, or why it says nothing.
type EtcdStatus struct {
	etcd.Status
	Problem string
}

// Member returns the member of a Node; false: there is none.
func (e Etcd) Member(node string) (etcd.Member, bool) {
	for _, m := range e.Members {
		if m.Name == node {
			return m, true
		}
	}
	return etcd.Member{}, false
}

// isTorn reports whether a member that answers knows other members than the list has: one joined or left while they were asked, or they
// do not agree.
func (e Etcd) isTorn() bool {
	for _, s := range e.Statuses {
		if len(s.Members) > 0 && !SameMembers(s.Members, e.Members) {
			return true
		}
	}
	return false
}

// SameMembers reports whether two lists have the same members.
func SameMembers(a, b []etcd.Member) bool {
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

// Leader is the Node of the leader, as the members see it; empty: not known.
func (e Etcd) Leader() string {
	for _, s := range e.Statuses {
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

// The components of a control plane, whose static Pods are named <component>-<node>.
const (
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	EtcdPod           = "etcd"
)

// PodOf is the static Pod of a component on a Node; nil: it does not exist.
func (s State) PodOf(component, node string) *corev1.Pod { return s.Pods[component+"-"+node] }

// ClusterID is that of the etcd cluster that most members are of; 0: none says.
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

// configName is the ConfigMap in which kubeadm keeps the configuration of the cluster.
const configName = "kubeadm-config"

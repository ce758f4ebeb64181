package lifecycle

import (
	"maps"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)

// WorkersAnnotation on a Cluster lists the existing workers of its topology, such as
// "MachineDeployment/a,MachinePool/p". It is included in backups: a worker that is listed, does not exist and was not
// observed while it was deleted is still to be restored. Creating a new one instead would replace its Machines. The
// topology controller writes it to each Cluster with a topology.
const WorkersAnnotation = "topology.slipway.dev/workers"

// hookSet is the set of pending hooks in Cluster API's annotation pending-hooks. Unknown hooks are preserved. [Next]
// changes it, and [changes] compares it with the annotation at the end.
type hookSet map[Hook]bool

// pendingOf parses the annotation of a Cluster.
func pendingOf(cluster *clusterv1.Cluster) hookSet {
	out := hookSet{}
	for _, name := range strings.Split(cluster.Annotations[runtimev1.PendingHooksAnnotation], ",") {
		if name = strings.TrimSpace(name); name != "" {
			out[Hook(name)] = true
		}
	}
	return out
}

// String returns the value of the annotation: sorted and separated by commas.
func (s hookSet) String() string {
	names := make([]string, 0, len(s))
	for hook := range s {
		names = append(names, string(hook))
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

func (s hookSet) add(hooks ...Hook) {
	for _, hook := range hooks {
		s[hook] = true
	}
}

func (s hookSet) remove(hooks ...Hook) {
	for _, hook := range hooks {
		delete(s, hook)
	}
}

// IsPending reports whether a hook of the Cluster still has to be called, or was called and blocks. The webhook of
// Clusters and `slipway upgrade cluster` check with it whether the previous upgrade is complete.
func IsPending(cluster *clusterv1.Cluster, hook Hook) bool { return pendingOf(cluster)[hook] }

// changes returns the annotations that differ from the current ones on the Cluster. The topology controller writes
// them. [Next] calls it at its end.
func changes(cluster *clusterv1.Cluster, pending hookSet, step string) map[string]*string {
	out := map[string]*string{}
	if !maps.Equal(pending, pendingOf(cluster)) {
		out[runtimev1.PendingHooksAnnotation] = valueOrNil(pending.String())
	}
	if now, has := cluster.Annotations[clusterv1.ClusterTopologyUpgradeStepAnnotation]; now != step || has && step == "" {
		out[clusterv1.ClusterTopologyUpgradeStepAnnotation] = valueOrNil(step)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func valueOrNil(value string) *string {
	if value == "" {
		return nil
	}
	return &value
}

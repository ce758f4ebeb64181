package lifecycle

import (
	"maps"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)

// WorkersAnnotation of a Cluster lists the workers of its topology that exist, such as "MachineDeployment/a,MachinePool/p". A backup
// keeps it: a worker that is listed and does not exist, and was not seen while it was deleted, is still to be restored. A new one in its
// place would replace its Machines.
const WorkersAnnotation = "topology.slipway.dev/workers"

// hookSet is a set of pending hooks. Hooks that are not known here stay in it.
type hookSet map[Hook]bool

// pendingOf reads the annotation of a Cluster.
func pendingOf(cluster *clusterv1.Cluster) hookSet {
	out := hookSet{}
	for _, name := range strings.Split(cluster.Annotations[runtimev1.PendingHooksAnnotation], ",") {
		if name = strings.TrimSpace(name); name != "" {
			out[Hook(name)] = true
		}
	}
	return out
}

// String is the value of the annotation: sorted, separated by commas.
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

// IsPending reports whether a hook of the Cluster is still to be called, or was called and holds something back.
func IsPending(cluster *clusterv1.Cluster, hook Hook) bool { return pendingOf(cluster)[hook] }

// changes are the annotations that differ from those of the Cluster.
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

package machineset

import (
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Machines are those that the action creates, without what the API server adds.
func (a Create) Machines(s Snapshot) []*clusterv1.Machine {
	var out []*clusterv1.Machine
	for _, name := range strings.Fields(a.Names) {
		out = append(out, newMachine(s, name))
	}
	return out
}

// Result is what the Machine is after the action, as far as the set says it.
func (a SyncMachine) Result(s Snapshot) *clusterv1.Machine {
	return kept(s, s.machine(a.Machine).Machine)
}

package cluster

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fleet"
	"github.com/slipwayhq/slipway/internal/fleet/mirror"
	"github.com/slipwayhq/slipway/internal/rootcause"
)

// GetMachinesCommand returns the get machines command, for package cli. [lists] implements its flags, --watch and the
// output.
func GetMachinesCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "machines",
		Aliases: []string{"machine"},
		Short:   "List the Machines of all clusters",
		Long: `List the Machines of all clusters with their Nodes, versions and the cause of a problem. VERSION shows
the version of the kubelet and the desired version while they differ.`,
		Example: "  slipway get machines\n  slipway get machines -A --problems\n  slipway get machines -l cluster.x-k8s.io/cluster-name=demo",
		Args:    cobra.NoArgs,
	}
	v := lists[fleet.Machine]{
		kind: "machines", of: machineKind(), rows: machineRows, compare: fleet.CompareMachines, byTrouble: fleet.CompareMachinesByTrouble,
		attributes: func(m fleet.Machine) attributes { return attributes{m.Namespace, m.Name, m.Labels, m.Health} },
		header:     []string{"CLUSTER", "NAME", "NODE", "VERSION", "READY", "UP TO DATE", "STATUS"},
		wide:       []string{"ROLE", "PHASE", "AVAILABLE", "AGE"},
		cells:      machineCells, hasRemedies: true,
		withFlags: func(m *fleet.Machine, flags string) { m.WithFlags(flags) },
	}
	v.addTo(e, cmd)
	return cmd
}

// machineKind returns the kind Machine, from which "get nodes" also reads its rows.
func machineKind() schema.GroupKind {
	return schema.GroupKind{Group: clusterv1.GroupVersion.Group, Kind: "Machine"}
}

// machineRows computes the rows of the Machines whose clusters have changed, or whose health depends on the time.
// [lists] calls the function that it returns before each output. The function reuses the other rows of its last call.
func machineRows(s *mirror.Store) func([]fleet.Key, time.Time) []fleet.Machine {
	known := map[fleet.Key]map[string]fleet.Machine{}
	var timed time.Time
	return func(changed []fleet.Key, now time.Time) []fleet.Machine {
		stale := map[fleet.Key]bool{}
		for _, key := range changed {
			stale[key] = true
		}
		if now.Sub(timed) >= fleet.TimeDependent {
			timed = now
			addTimed(stale, known)
		}
		rows := []fleet.Machine{}
		current := map[fleet.Key]map[string]fleet.Machine{}
		for _, u := range s.Objects(machineKind(), "") {
			cluster := clusterOf(s, u)
			row, isKnown := known[cluster][u.GetName()]
			if !isKnown || stale[cluster] {
				machine, ok := rootcause.Decode[clusterv1.Machine](u)
				if !ok {
					continue
				}
				row = fleet.NewMachine(s, machine, now)
			}
			if current[cluster] == nil {
				current[cluster] = map[string]fleet.Machine{}
			}
			current[cluster][row.Name] = row
			rows = append(rows, row)
		}
		known = current
		return rows
	}
}

// clusterOf returns the cluster of a Machine, or only its namespace if there is none.
func clusterOf(s *mirror.Store, machine *unstructured.Unstructured) fleet.Key {
	for _, key := range s.ClustersOf(machine) {
		return key
	}
	return fleet.Key{Namespace: machine.GetNamespace()}
}

// addTimed adds the clusters with a Machine whose row may change without a change of an object.
func addTimed(stale map[fleet.Key]bool, known map[fleet.Key]map[string]fleet.Machine) {
	for cluster, machines := range known {
		for _, row := range machines {
			stale[cluster] = stale[cluster] || row.IsTimed()
		}
	}
}

// machineCells returns the cells of a Machine. Their order is the order of the columns in GetMachinesCommand.
func machineCells(m fleet.Machine, t cellTimes) listCells {
	version := cmp.Or(m.Running, m.Version)
	if m.Running != "" && m.Version != "" && m.Running != m.Version {
		version = m.Running + " → " + m.Version
	}
	return listCells{
		cells:  []string{m.Cluster, m.Name, m.Node, version, m.Ready, m.UpToDate, string(m.Health)},
		since:  t.since(m.Since),
		wide:   []string{m.Role, m.Phase, m.Available, t.age(m.Created)},
		reason: m.Reason, whole: m.WholeReason(), remedy: remedyText(m.Cause),
	}
}

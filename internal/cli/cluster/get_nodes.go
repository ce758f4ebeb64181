package cluster

import (
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fleet"
	"github.com/slipwayhq/slipway/internal/fleet/mirror"
	"github.com/slipwayhq/slipway/internal/rootcause"
)

// GetNodesCommand returns the get nodes command, for package cli. [lists] implements its flags, --watch and the output.
func GetNodesCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "nodes",
		Aliases: []string{"node"},
		Short:   "List the Nodes of all clusters",
		Long: `List the Nodes of all clusters. The information is from the status of the Machines in the management
cluster, so that no workload cluster has to be reachable. The conditions of Nodes of a MachinePool
without Machines are not known there.`,
		Example: "  slipway get nodes\n  slipway get nodes -A --problems -o wide",
		Args:    cobra.NoArgs,
	}
	v := lists[fleet.Node]{
		kind: "nodes", of: machineKind(), reads: []schema.GroupKind{machineKind(), machinePoolKind()}, rows: nodeRows, compare: fleet.CompareNodes, byTrouble: fleet.CompareNodesByTrouble,
		attributes: func(n fleet.Node) attributes { return attributes{n.Namespace, n.Name, n.Labels, n.Health} },
		header:     []string{"CLUSTER", "NAME", "ROLE", "VERSION", "READY", "STATUS"},
		wide:       []string{"MACHINE", "ADDRESS", "OS IMAGE", "KERNEL", "CONTAINER RUNTIME", "AGE"},
		cells:      nodeCells,
		labelled:   "Machines and MachinePools of the nodes",
		unknown:    "Nodes",
	}
	v.addTo(e, cmd)
	return cmd
}

func machinePoolKind() schema.GroupKind {
	return schema.GroupKind{Group: clusterv1.GroupVersion.Group, Kind: "MachinePool"}
}

// nodeRows computes the rows of all Nodes. [lists] calls the function that it returns before each output. The function
// reuses no rows, because it takes little time.
func nodeRows(s *mirror.Store) func([]fleet.Key, time.Time) []fleet.Node {
	return func(_ []fleet.Key, now time.Time) []fleet.Node { return readNodes(s, now) }
}

func readNodes(s *mirror.Store, now time.Time) []fleet.Node {
	rows := []fleet.Node{}
	ofMachines := map[fleet.Key]map[string]bool{}
	for _, u := range s.Objects(machineKind(), "") {
		machine, ok := rootcause.Decode[clusterv1.Machine](u)
		if !ok {
			continue
		}
		if row, ok := fleet.NewNode(machine, now); ok {
			rows = append(rows, row)
			cluster := fleet.Key{Namespace: row.Namespace, Name: row.Cluster}
			if ofMachines[cluster] == nil {
				ofMachines[cluster] = map[string]bool{}
			}
			ofMachines[cluster][row.Name] = true
		}
	}
	for _, u := range s.Objects(machinePoolKind(), "") {
		if pool, ok := rootcause.Decode[clusterv1.MachinePool](u); ok {
			rows = append(rows, fleet.NewPoolNodes(pool, ofMachines[fleet.Key{Namespace: pool.Namespace, Name: pool.Spec.ClusterName}])...)
		}
	}
	return rows
}

// nodeCells returns the cells of a Node. Their order is the order of the columns in GetNodesCommand.
func nodeCells(n fleet.Node, t cellTimes) listCells {
	return listCells{
		cells:  []string{n.Cluster, n.Name, n.Role, n.Version, n.StatusText(), string(n.Health)},
		since:  t.since(n.Since),
		wide:   []string{n.Machine, n.Address, n.Image, n.Kernel, n.Runtime, t.age(n.Created)},
		reason: n.Reason, whole: n.WholeReason(),
	}
}

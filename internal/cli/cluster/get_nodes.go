package cluster

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fleet"
	"github.com/slipwayhq/slipway/internal/fleet/mirror"
)

// GetNodesCommand returns the get nodes command.
func GetNodesCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "nodes",
		Aliases: []string{"node"},
		Short:   "List the Nodes of all clusters",
		Long: `List the Nodes of all clusters. The information is from the status of the Machines in the management
cluster, so that no workload cluster has to be reachable.`,
		Example: "  slipway get nodes\n  slipway get nodes -A --problems -o wide",
		Args:    cobra.NoArgs,
	}
	v := lists[fleet.Node]{
		kind: "nodes", read: readNodes, compare: fleet.CompareNodes, byTrouble: fleet.CompareNodesByTrouble,
		attributes: func(n fleet.Node) attributes { return attributes{n.Namespace, n.Labels, n.Health} },
		header:     []string{"CLUSTER", "NAME", "ROLE", "VERSION", "READY", "STATUS", "REASON", "SINCE"},
		wide:       []string{"MACHINE", "ADDRESS", "OS IMAGE", "KERNEL", "CONTAINER RUNTIME", "AGE"},
		cells:      nodeCells,
	}
	v.addTo(e, cmd)
	return cmd
}

func readNodes(m *mirror.Mirror, _ term.Env) []fleet.Node {
	rows := []fleet.Node{}
	for _, machine := range machines(m) {
		if row, ok := fleet.NewNode(machine); ok {
			rows = append(rows, row)
		}
	}
	return rows
}

func nodeCells(n fleet.Node, t cellTimes) (cells, wide []string) {
	cells = []string{n.Cluster, n.Name, n.Role, cmp.Or(n.Version, "-"), n.StatusText(), string(n.Health), cmp.Or(n.Reason, "-"), t.since(n.Since)}
	return cells, []string{n.Machine, cmp.Or(n.Address, "-"), cmp.Or(n.Image, "-"), cmp.Or(n.Kernel, "-"), cmp.Or(n.Runtime, "-"), t.age(n.Created)}
}

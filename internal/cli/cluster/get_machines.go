package cluster

import (
	"cmp"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fleet"
	"github.com/slipwayhq/slipway/internal/fleet/mirror"
)

// GetMachinesCommand returns the get machines command.
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
		kind: "machines", read: readMachines, compare: fleet.CompareMachines, byTrouble: fleet.CompareMachinesByTrouble,
		attributes: func(m fleet.Machine) attributes { return attributes{m.Namespace, m.Name, m.Labels, m.Health} },
		header:     []string{"CLUSTER", "NAME", "NODE", "VERSION", "READY", "UP TO DATE", "STATUS", "REASON", "SINCE"},
		wide:       []string{"ROLE", "PHASE", "AVAILABLE", "AGE", "REMEDY"},
		cells:      machineCells,
		withFlags:  func(m *fleet.Machine, flags string) { m.WithFlags(flags) },
	}
	v.addTo(e, cmd)
	return cmd
}

// machines returns the Machines of a mirror.
func machines(m *mirror.Mirror) (out []*clusterv1.Machine) {
	for _, u := range m.Store.Objects(schema.GroupKind{Group: clusterv1.GroupVersion.Group, Kind: "Machine"}, "") {
		if decoded, ok := fleet.DecodeMachine(u); ok {
			out = append(out, decoded)
		}
	}
	return out
}

func readMachines(m *mirror.Mirror, e term.Env) []fleet.Machine {
	rows := []fleet.Machine{}
	for _, machine := range machines(m) {
		rows = append(rows, fleet.NewMachine(m.Store, machine, e.Now()))
	}
	return rows
}

func machineCells(m fleet.Machine, t cellTimes) (cells, wide []string) {
	version := cmp.Or(m.Running, m.Version, "-")
	if m.Running != "" && m.Version != "" && m.Running != m.Version {
		version = m.Running + " → " + m.Version
	}
	cells = []string{m.Cluster, m.Name, cmp.Or(m.Node, "-"), version, m.Ready, m.UpToDate, string(m.Health), cmp.Or(m.Reason, "-"), t.since(m.Since)}
	return cells, []string{m.Role, cmp.Or(m.Phase, "-"), m.Available, t.age(m.Created), cmp.Or(m.Remedy, "-")}
}

package machines

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

// AwaitOwnership adds the wait that the decision of package ownership requires to the plan of a MachineSet or
// MachineDeployment. Their controllers call it in each reconciliation in which the owners of some objects are not
// known.
func AwaitOwnership(p *reconciler.Plan, v ownership.Decision) {
	wait := p.WaitFor(v.Reason, "%s", v.Message)
	for _, object := range v.On {
		kind, name, _ := strings.Cut(object, " ")
		wait.For(kind, name)
	}
	if v.NeedsUser {
		wait.UntilUserActs()
	} else {
		wait.ToChange(v.Field)
	}
	p.RecheckIn(v.Recheck)
}

// Workloads provides clients for workload clusters. The MachineSet controller passes its connections.
type Workloads interface {
	Client(ctx context.Context, cluster client.ObjectKey) (client.Client, error)
}

// ReadOrphanedNodes finds Nodes in a workload cluster whose Machines belonged to the owner and no longer exist, as
// happens after a restore. The MachineSet controller calls it until it is known that the MachineSet has all its
// Machines. If the workload cluster is unreachable, NodesRead of the result is false.
func ReadOrphanedNodes(ctx context.Context, w Workloads, cluster client.ObjectKey, owner string, exist map[string]bool) (ownership.Workload, error) {
	nodes := &corev1.NodeList{}
	workload, err := w.Client(ctx, cluster)
	if err == nil {
		err = workload.List(ctx, nodes)
	}
	if fault.KindOf(err) == fault.Unreachable {
		return ownership.Workload{Problem: "it is not connected"}, nil
	}
	if err != nil {
		return ownership.Workload{}, fmt.Errorf("listing Nodes: %w", err)
	}
	strays := ownership.OrphanedNodes(cluster, nodes.Items,
		func(name string) bool { return name == owner }, func(machine string) bool { return exist[machine] })
	return ownership.Workload{NodesRead: true, OrphanedNodes: strays}, nil
}

package upgrade

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/clusterctl/tree"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/topology/lifecycle"
	"github.com/slipwayhq/slipway/internal/version"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// manager is the name of the field manager without its prefix.
const manager = "cli"

// Reasons of the faults of this package.
const (
	// ReasonNoTopology says that the Cluster has no ClusterClass; the kind is Invalid.
	ReasonNoTopology = "ClusterWithoutTopology"
	// ReasonBusy says that an upgrade runs already; the kind is Invalid.
	ReasonBusy = "UpgradeUnderway"
	// ReasonChanged says that the Cluster is not the one of the plan; the kind is Conflict.
	ReasonChanged = "ClusterChanged"
)

// Plan is what an upgrade will do.
type Plan struct {
	Cluster string `json:"cluster"`
	From    string `json:"from"`
	To      string `json:"to"`
	// Steps in their order; empty: everything has the version.
	Steps []Step `json:"steps"`
	// Extension is the handler that will be asked for the steps, which are not known before; empty: none.
	Extension string `json:"extension,omitempty"`
}

// Step is one version for one side of the cluster.
type Step struct {
	// ControlPlane tells a step of the control plane from one of the workers.
	ControlPlane bool   `json:"controlPlane"`
	Version      string `json:"version"`
	// Nodes of the control plane that are replaced; 0: it has none.
	Nodes int `json:"nodes,omitempty"`
	// Workers are the groups that get the version. None for the control plane.
	Workers []Group `json:"workers,omitempty"`
}

// Group is a MachineDeployment or MachinePool of the topology.
type Group struct {
	Kind string `json:"kind"`
	// Name is that in the topology.
	Name string `json:"name"`
	// From is the version that the group has before the upgrade.
	From string `json:"from"`
	// Nodes that are replaced.
	Nodes int32 `json:"nodes"`
	// Held says why the group will not get the version for now; empty: it will.
	Held string `json:"held,omitempty"`
}

// Of plans an upgrade of the cluster. The error says why there cannot be one.
func Of(s tree.Snapshot, class *clusterv1.ClusterClass, to string) (Plan, error) {
	topology := s.Cluster.Spec.Topology
	p := Plan{Cluster: s.Cluster.Name, To: to, Steps: []Step{}}
	switch {
	case !topology.IsDefined():
		return p, fault.New(fault.Invalid, ReasonNoTopology, "cluster %q has no ClusterClass: change the version of its control plane, then those of its MachineDeployments "+
			"and MachinePools", p.Cluster)
	case lifecycle.IsPending(s.Cluster, lifecycle.AfterClusterUpgrade) && topology.Version != to:
		return p, fault.New(fault.Invalid, ReasonBusy, "the upgrade of cluster %q to %s is not over: see `slipway describe cluster %s`, and ask again when it is",
			p.Cluster, topology.Version, p.Cluster)
	}
	groups := groupsOf(s)
	p.From = controlPlaneVersion(s)
	workers := make([]lifecycle.Worker, 0, len(groups))
	for _, g := range groups {
		workers = append(workers, lifecycle.Worker{Exists: true, Version: g.From})
	}
	if p.Extension = class.Spec.Upgrade.External.GenerateUpgradePlanExtension; p.Extension != "" {
		return p, check(p.From, to)
	}
	journey := lifecycle.Journey{ControlPlane: p.From, Workers: lifecycle.Lowest(workers, p.From, to), Target: to}
	route, err := journey.Route(class.Name, class.Spec.KubernetesVersions)
	if err != nil {
		return p, err
	}
	p.Steps = steps(p.From, route, groups)
	for i := range p.Steps {
		if p.Steps[i].ControlPlane {
			p.Steps[i].Nodes = controlPlaneNodes(s)
		}
	}
	return p, nil
}

// check refuses a target that is no version, or an older one.
func check(from, to string) error {
	at, err := version.Parse(from)
	if err != nil {
		return err
	}
	want, err := version.Parse(to)
	switch {
	case err != nil:
		return fault.New(fault.Invalid, "UpgradePlanInvalid", "version %q is not a semantic version, for example v1.36.3", to).From(err)
	case want.Compare(at) < 0:
		return fault.New(fault.Invalid, "UpgradePlanInvalid", "%s is older than %s, which the control plane has", to, from)
	}
	return nil
}

// steps puts both sides in the order in which they are upgraded: workers after the control plane of the same version.
func steps(from string, route lifecycle.Route, groups []Group) []Step {
	out := []Step{}
	add := func(v string) {
		if slices.Contains(route.Workers, v) {
			out = append(out, Step{Version: v, Workers: due(groups, v)})
		}
	}
	if !slices.Contains(route.ControlPlane, from) {
		add(from)
	}
	for _, v := range route.ControlPlane {
		out = append(out, Step{ControlPlane: true, Version: v})
		add(v)
	}
	return out
}

// due are the groups that do not have the version. Those that get it have it in the steps that follow.
func due(groups []Group, v string) []Group {
	var out []Group
	for i, g := range groups {
		if g.From == v {
			continue
		}
		out = append(out, g)
		if g.Held == "" {
			groups[i].From = v
		}
	}
	return out
}

// controlPlaneVersion is that of the control plane's spec; of the topology while there is none.
func controlPlaneVersion(s tree.Snapshot) string {
	ref := s.Cluster.Spec.ControlPlaneRef
	if o := s.Objects[tree.Ref{Group: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}]; o != nil {
		if v, ok := contract.ControlPlane(contract.Object{Unstructured: o, Contract: contract.V1Beta2}).SpecVersion.Get(); ok {
			return v
		}
	}
	return s.Cluster.Spec.Topology.Version
}

// controlPlaneNodes is how many Machines the control plane has.
func controlPlaneNodes(s tree.Snapshot) int {
	n := 0
	for i := range s.Machines {
		if _, is := s.Machines[i].Labels[clusterv1.MachineControlPlaneLabel]; is && s.Machines[i].DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

// groupsOf are the workers of the topology that exist, in its order.
func groupsOf(s tree.Snapshot) []Group {
	var out []Group
	held := ""
	for _, t := range s.Cluster.Spec.Topology.Workers.MachineDeployments {
		if _, ok := t.Metadata.Annotations[clusterv1.ClusterTopologyHoldUpgradeSequenceAnnotation]; ok && held == "" {
			held = "held by annotation " + clusterv1.ClusterTopologyHoldUpgradeSequenceAnnotation + " of MachineDeployment " + t.Name
		}
		for _, d := range s.Deployments {
			if d.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel] == t.Name {
				out = append(out, Group{"MachineDeployment", t.Name, d.Spec.Template.Spec.Version, count(d.Spec.Replicas), why(t.Metadata, held)})
			}
		}
	}
	held = ""
	for _, t := range s.Cluster.Spec.Topology.Workers.MachinePools {
		if _, ok := t.Metadata.Annotations[clusterv1.ClusterTopologyHoldUpgradeSequenceAnnotation]; ok && held == "" {
			held = "held by annotation " + clusterv1.ClusterTopologyHoldUpgradeSequenceAnnotation + " of MachinePool " + t.Name
		}
		for _, p := range s.Pools {
			if p.Labels[clusterv1.ClusterTopologyMachinePoolNameLabel] == t.Name {
				out = append(out, Group{"MachinePool", t.Name, p.Spec.Template.Spec.Version, count(p.Spec.Replicas), why(t.Metadata, held)})
			}
		}
	}
	return out
}

func why(m clusterv1.ObjectMeta, held string) string {
	if _, ok := m.Annotations[clusterv1.ClusterTopologyDeferUpgradeAnnotation]; ok {
		return "deferred by annotation " + clusterv1.ClusterTopologyDeferUpgradeAnnotation
	}
	return held
}

// count is the number of nodes that is asked for.
func count(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}

// Apply gives the topology its new version. A change of the Cluster's spec since it was read, which the plan has not seen, is not
// overwritten; what controllers write meanwhile does not matter.
func Apply(ctx context.Context, c client.Client, read *clusterv1.Cluster, to string) error {
	writer := kube.NewWriter(c, manager)
	live := read
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		err := writer.Patch(ctx, live, func(o client.Object) {
			if changed, ok := o.(*clusterv1.Cluster); ok {
				changed.Spec.Topology.Version = to
			}
		})
		if !apierrors.IsConflict(err) {
			return err
		}
		now := &clusterv1.Cluster{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(read), now); err != nil {
			return fmt.Errorf("reading it once more: %w", err)
		}
		if now.UID != read.UID || !equality.Semantic.DeepEqual(now.Spec, read.Spec) {
			return fault.New(fault.Conflict, ReasonChanged, "its spec was changed after the plan was made; run the command once more")
		}
		live = now
		return err
	})
	if err != nil {
		return fmt.Errorf("setting spec.topology.version of cluster %s to %s: %w", read.Name, to, err)
	}
	return nil
}

// Lines are the plan for people.
func (p Plan) Lines() []string {
	if p.Extension != "" {
		return []string{fmt.Sprintf("Upgrade of cluster %s from %s to %s; handler %s decides the steps on the way.", p.Cluster, p.From, p.To, p.Extension)}
	}
	if len(p.Steps) == 0 {
		return []string{fmt.Sprintf("Cluster %s has Kubernetes %s; nothing is to be upgraded.", p.Cluster, p.To)}
	}
	lines := []string{fmt.Sprintf("Upgrade of cluster %s from %s to %s:", p.Cluster, p.From, p.To)}
	if p.From == p.To {
		lines = []string{fmt.Sprintf("The upgrade of cluster %s to %s has begun; what is left:", p.Cluster, p.To)}
	}
	for i, s := range p.Steps {
		what := "workers"
		if s.ControlPlane {
			what = "control plane"
		}
		line := fmt.Sprintf("  %d. %s to %s", i+1, what, s.Version)
		switch s.Nodes {
		case 0:
		case 1:
			line += ": 1 node is replaced"
		default:
			line += fmt.Sprintf(": %d nodes are replaced, one after the other", s.Nodes)
		}
		lines = append(lines, line)
		for _, g := range s.Workers {
			lines = append(lines, "     "+g.String())
		}
	}
	return lines
}

// String is the group for people.
func (g Group) String() string {
	text := fmt.Sprintf("%s %s: %d nodes are replaced, now %s", g.Kind, g.Name, g.Nodes, g.From)
	if g.Nodes == 1 {
		text = fmt.Sprintf("%s %s: 1 node is replaced, now %s", g.Kind, g.Name, g.From)
	}
	if g.Held != "" {
		text = strings.TrimSuffix(fmt.Sprintf("%s %s stays at %s: %s", g.Kind, g.Name, g.From, g.Held), ": ")
	}
	return text
}

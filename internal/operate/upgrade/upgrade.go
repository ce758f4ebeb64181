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

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/internal/topology/lifecycle"
	"github.com/slipwayhq/slipway/internal/version"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// upgradeFieldManager is the name of the field manager without its prefix.
const upgradeFieldManager = "cli"

// Reasons of faults.
const (
	// reasonNoTopology is the reason when the Cluster has no ClusterClass; Invalid.
	reasonNoTopology = "ClusterWithoutTopology"
	// reasonBusy is the reason when an upgrade is in progress; Invalid.
	reasonBusy = "UpgradeUnderway"
	// reasonChanged is the reason when the Cluster has changed since the plan was computed; Conflict.
	reasonChanged = "ClusterChanged"
)

// Plan is the plan of an upgrade, which `slipway upgrade cluster` shows, also as JSON.
type Plan struct {
	Cluster string `json:"cluster"`
	From    string `json:"from"`
	To      string `json:"to"`
	// Steps are in execution order; empty if everything has the target version.
	Steps []Step `json:"steps"`
	// Extension is the handler that determines the steps during the upgrade; empty if there is none.
	Extension string `json:"extension,omitempty"`
}

// Step is the upgrade of the control plane or of workers to one version.
type Step struct {
	// ControlPlane is true for the control plane, and false for workers.
	ControlPlane bool   `json:"controlPlane"`
	Version      string `json:"version"`
	// Nodes is the number of control plane nodes to replace; 0 if it has none.
	Nodes int `json:"nodes,omitempty"`
	// Workers are the groups to upgrade; empty for the control plane.
	Workers []Group `json:"workers,omitempty"`
}

// Group is a MachineDeployment or MachinePool of the topology. [NewPlan] fills it in. `slipway upgrade cluster` prints
// it, also as JSON, so the field names must not change.
type Group struct {
	Kind string `json:"kind"`
	// Name is the name in the topology.
	Name string `json:"name"`
	// From is the version before the upgrade.
	From string `json:"from"`
	// Nodes is the number of nodes to replace.
	Nodes int32 `json:"nodes"`
	// HeldReason is the reason why the group is not upgraded yet; empty if it is.
	HeldReason string `json:"held,omitempty"`
}

// NewPlan plans an upgrade of the cluster. It is computed with package lifecycle, as the topology controller does. The
// error explains why the upgrade is not possible. `slipway upgrade cluster` calls it.
func NewPlan(s describe.Snapshot, class *clusterv1.ClusterClass, to string) (Plan, error) {
	topology := s.Cluster.Spec.Topology
	p := Plan{Cluster: s.Cluster.Name, To: to, Steps: []Step{}}
	switch {
	case !topology.IsDefined():
		return p, fault.New(fault.Invalid, reasonNoTopology, "cluster %q has no ClusterClass: change the version of its control plane, then those of its MachineDeployments "+
			"and MachinePools", p.Cluster)
	case lifecycle.IsPending(s.Cluster, lifecycle.AfterClusterUpgrade) && topology.Version != to:
		return p, fault.New(fault.Invalid, reasonBusy, "the upgrade of cluster %q to %s is in progress: see `slipway describe cluster %s`, and retry when it is complete",
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
	journey := lifecycle.PlanInput{ControlPlane: p.From, Workers: lifecycle.Lowest(workers, p.From, to), Target: to}
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

// check returns an error if the target version is invalid or older.
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

// steps orders the upgrades: workers after the control plane of the same version.
func steps(from string, route lifecycle.UpgradePlan, groups []Group) []Step {
	out := []Step{}
	add := func(v string) {
		if slices.Contains(route.Workers, v) {
			out = append(out, Step{Version: v, Workers: groupsBelow(groups, v)})
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

// groupsBelow returns the groups that do not have the version, and updates groups for the following steps.
func groupsBelow(groups []Group, v string) []Group {
	var out []Group
	for i, g := range groups {
		if g.From == v {
			continue
		}
		out = append(out, g)
		if g.HeldReason == "" {
			groups[i].From = v
		}
	}
	return out
}

// controlPlaneVersion returns the version in the control plane's spec, or in the topology if there is no control plane.
func controlPlaneVersion(s describe.Snapshot) string {
	ref := s.Cluster.Spec.ControlPlaneRef
	if o := s.Objects[describe.Ref{Group: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}]; o != nil {
		if v, ok := contract.ControlPlane(contract.Object{Unstructured: o, Contract: contract.V1Beta2}).SpecVersion.Get(); ok {
			return v
		}
	}
	return s.Cluster.Spec.Topology.Version
}

// controlPlaneNodes returns the number of control plane Machines.
func controlPlaneNodes(s describe.Snapshot) int {
	n := 0
	for i := range s.Machines {
		if _, is := s.Machines[i].Labels[clusterv1.MachineControlPlaneLabel]; is && s.Machines[i].DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

// groupsOf returns the existing workers of the topology in its order.
func groupsOf(s describe.Snapshot) []Group {
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

// count returns the desired number of nodes.
func count(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}

// Apply sets the new version of the topology. It returns a conflict if the Cluster's spec has changed since it was read
// for the plan; concurrent changes by controllers are ignored. `slipway upgrade cluster` calls it with the Cluster of
// the plan.
func Apply(ctx context.Context, c client.Client, read *clusterv1.Cluster, to string) error {
	writer := kube.NewWriter(c, upgradeFieldManager)
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
			return fault.New(fault.Conflict, reasonChanged, "its spec has changed since the plan was computed; run the command again")
		}
		live = now
		return err
	})
	if err != nil {
		return fmt.Errorf("setting spec.topology.version of cluster %s to %s: %w", read.Name, to, err)
	}
	return nil
}

// Lines formats the plan for display. `slipway upgrade cluster` prints them.
func (p Plan) Lines() []string {
	if p.Extension != "" {
		return []string{fmt.Sprintf("Upgrade of cluster %s from %s to %s; handler %s decides the steps on the way.", p.Cluster, p.From, p.To, p.Extension)}
	}
	if len(p.Steps) == 0 {
		return []string{fmt.Sprintf("Cluster %s has Kubernetes %s; nothing is to be upgraded.", p.Cluster, p.To)}
	}
	lines := []string{fmt.Sprintf("Upgrade of cluster %s from %s to %s:", p.Cluster, p.From, p.To)}
	if p.From == p.To {
		lines = []string{fmt.Sprintf("The upgrade of cluster %s to %s is in progress; remaining steps:", p.Cluster, p.To)}
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

// String formats the group for display.
func (g Group) String() string {
	text := fmt.Sprintf("%s %s: %d nodes are replaced, now %s", g.Kind, g.Name, g.Nodes, g.From)
	if g.Nodes == 1 {
		text = fmt.Sprintf("%s %s: 1 node is replaced, now %s", g.Kind, g.Name, g.From)
	}
	if g.HeldReason != "" {
		text = strings.TrimSuffix(fmt.Sprintf("%s %s stays at %s: %s", g.Kind, g.Name, g.From, g.HeldReason), ": ")
	}
	return text
}

package move

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/version"
)

// HostResources are the host resources of Clusters, the input of [hostSurvey]: the folders and processes of hosted
// control planes, the folders of load balancers and images, and the Docker networks, containers and volumes.
// [HostPair.Read] fills them in.
type HostResources struct {
	// From and To are the instance IDs of the source and the target; Target is the data directory of the target.
	From, To, Target string
	// Versions are the Kubernetes versions that the target can run.
	Versions []string
	Clusters []HostCluster
	// Orphans are objects that belong to none of these Clusters.
	Orphans []graph.ID
}

// HostCluster has the host resources of a Cluster. [HostPair.Read] fills it in.
type HostCluster struct {
	// Key is its namespace and name.
	Key, UID string
	Planes   []HostPlane
	// Networks are its LocalClusters; Machines are its LocalMachines with the names of their containers.
	Networks []graph.ID
	Machines []HostMachine
	// Balancers are the names of existing load balancer folders.
	Balancers []string
	// Images is the folder with images for future nodes, if it exists; ImagesAtTarget reports whether the target has a
	// folder with this name.
	Images         []string
	ImagesAtTarget bool
	// Items are the Docker resources of the source.
	Items []hosttransfer.Item
	// Record is the source's record of a transfer; nil if there is none.
	Record *hosttransfer.Record
}

// HostMachine is a LocalMachine on the host. [HostPair.Read] fills it in.
type HostMachine struct {
	ID graph.ID
	// Object is its namespace and name.
	Object string
}

// HostPlane is a HostedControlPlane with its process. [HostPair.Read] fills it in.
type HostPlane struct {
	ID graph.ID
	// Name is the name of its folder.
	Name string
	// AtSource and AtTarget report whether the source and the target have the folder.
	AtSource, AtTarget bool
	// Initialized and Restoring are set from its annotations.
	Initialized, Restoring bool
	// PID is the ID of its process, and Version the running version; 0 and the version in the spec if it does not run.
	PID     int
	Version string
	// Relocatable reports whether the process is unaffected by a move of its folder.
	Relocatable bool
}

// ClusterResources has the resources of a Cluster to transfer. hostSurvey computes it for the plan, and
// [HostPair.Transfer] transfers the resources.
type ClusterResources struct {
	Record hosttransfer.Record
	planes []planeTransfer
}

// planeTransfer describes the transfer of a control plane.
type planeTransfer struct {
	id   graph.ID
	name string
	pid  int
	// restart is the reason why its process restarts; empty if it does not.
	restart string
}

// hostSurvey returns the resources to transfer, and the problems that prevent it. The plan of a move between two
// management clusters on one host calls it. It has no side effects.
func hostSurvey(f HostResources) (out []ClusterResources, problems []string) {
	for _, id := range f.Orphans {
		problems = append(problems, id.String()+" has something on this host, and is of no Cluster that moves")
	}
	for _, c := range f.Clusters {
		h := ClusterResources{Record: hosttransfer.Record{Cluster: c.Key, UID: c.UID, From: f.From, To: f.To, Balancers: c.Balancers, Images: c.Images, Items: c.Items}}
		// An interrupted transfer to this target may have moved some resources already, so its record is retained.
		begun := c.Record != nil && c.Record.InProgress && c.Record.To == f.To
		if begun {
			h.Record = merged(*c.Record, h.Record)
		}
		for _, p := range c.Planes {
			if why := f.refusalReason(p, begun); why != "" {
				problems = append(problems, p.ID.String()+" "+why)
			}
			h.planes = append(h.planes, planeTransfer{id: p.ID, name: p.Name, pid: p.PID, restart: f.restartReason(p)})
			if !slices.Contains(h.Record.Planes, p.Name) {
				h.Record.Planes = append(h.Record.Planes, p.Name)
			}
		}
		if c.Record != nil && c.Record.InProgress && !begun {
			problems = append(problems, fmt.Sprintf("Cluster %s is being handed over to another data directory: complete that move, or take it back with --rollback, first", c.Key))
		}
		if len(c.Images) > 0 && c.ImagesAtTarget {
			problems = append(problems, fmt.Sprintf("the target keeps images for a Cluster %s already: move %s/images/%s away", c.Key, f.Target, c.Key))
		}
		problems = append(problems, missing(c, h.Record.Items)...)
		if len(h.Record.Planes)+len(h.Record.Balancers)+len(h.Record.Images)+len(h.Record.Items) > 0 {
			out = append(out, h)
		}
	}
	return out, problems
}

// merged adds the entries of another record to a record.
func merged(r, other hosttransfer.Record) hosttransfer.Record {
	for _, i := range other.Items {
		if !slices.Contains(r.Items, i) {
			r.Items = append(slices.Clone(r.Items), i)
		}
	}
	for _, b := range other.Balancers {
		if !slices.Contains(r.Balancers, b) {
			r.Balancers = append(slices.Clone(r.Balancers), b)
		}
	}
	for _, name := range other.Images {
		if !slices.Contains(r.Images, name) {
			r.Images = append(slices.Clone(r.Images), name)
		}
	}
	return r
}

// refusalReason returns the reason why a control plane cannot be transferred.
func (f HostResources) refusalReason(p HostPlane, begun bool) string {
	switch {
	case p.AtSource && p.AtTarget:
		return fmt.Sprintf("has a folder of its name in the target's data directory already: delete the control plane there, or move %s/planes/%s away if it is of none", f.Target, p.Name)
	case begun:
		return ""
	case !p.AtSource:
		return "has no data on this host: restore it from a backup, or delete the cluster"
	case p.Restoring:
		return "is being restored from a snapshot: wait until that is over"
	case !p.Initialized:
		return "is not noted to be initialized yet: wait a moment"
	case f.targetVersion(p.Version) == "":
		return fmt.Sprintf("is of Kubernetes %s, which the target does not have: add it there first, with \"slipway versions add %s --data-dir %s\"", p.Version, p.Version, f.Target)
	}
	return ""
}

// targetVersion returns the version that the target uses to run the given one; empty if it has none.
func (f HostResources) targetVersion(want string) string {
	if slices.Contains(f.Versions, want) {
		return want
	}
	asked, err := version.Parse(want)
	if err != nil {
		return ""
	}
	for _, have := range f.Versions {
		if v, err := version.Parse(have); err == nil && v.SameMinor(asked) && v.Compare(asked) > 0 {
			return have
		}
	}
	return ""
}

// restartReason returns the reason why the process of a control plane restarts during the transfer; empty if it does
// not, or does not run.
func (f HostResources) restartReason(p HostPlane) string {
	to := f.targetVersion(p.Version)
	switch {
	case p.PID == 0:
		return ""
	case !p.Relocatable:
		return "it was started by an older version of slipway, or in a folder with a long path, and would not find its files at another place"
	case to != "" && to != p.Version:
		return "the target runs it at " + to
	}
	return ""
}

// missing returns the objects without resources on the host, which the target would create again.
func missing(c HostCluster, items []hosttransfer.Item) []string {
	var out []string
	has := func(kind hosttransfer.Kind, object string) bool {
		return slices.ContainsFunc(items, func(i hosttransfer.Item) bool { return i.Kind == kind && i.Object == object })
	}
	for _, n := range c.Networks {
		if !has(hosttransfer.Network, n.Namespace+"/"+n.Name) {
			out = append(out, n.String()+" has no network on this host that is the source's")
		}
	}
	for _, m := range c.Machines {
		if !has(hosttransfer.Container, m.Object) {
			out = append(out, m.ID.String()+" has no container on this host that is the source's: delete its Machine")
		}
	}
	return out
}

// Steps describes the transfer. Plan.survey adds the lines to the plan.
func (h ClusterResources) Steps() []string {
	var out []string
	for _, p := range h.planes {
		text := "host: hand over " + p.id.String() + " with its data: "
		switch {
		case p.pid == 0:
			text += "it does not run now"
		case p.restart != "":
			text += fmt.Sprintf("process %d restarts, because %s", p.pid, p.restart)
		default:
			text += fmt.Sprintf("process %d keeps running", p.pid)
		}
		out = append(out, text)
	}
	counts := map[hosttransfer.Kind]int{}
	for _, i := range h.Record.Items {
		counts[i.Kind]++
	}
	var what []string
	for _, kind := range []hosttransfer.Kind{hosttransfer.Network, hosttransfer.Container, hosttransfer.Volume} {
		switch n := counts[kind]; {
		case n == 1:
			what = append(what, "1 "+string(kind))
		case n > 1:
			what = append(what, fmt.Sprintf("%d %ss", n, kind))
		}
	}
	if n := len(h.Record.Balancers); n > 0 {
		what = append(what, "the load balancer")
	}
	if len(h.Record.Images) > 0 {
		what = append(what, "the images that are kept for later nodes")
	}
	if len(what) > 0 {
		out = append(out, fmt.Sprintf("host: hand over %s of Cluster %s: nothing restarts", strings.Join(what, ", "), h.Record.Cluster))
	}
	return out
}

// OnHost reports whether an object represents resources on the host of its management cluster. Package operate/backup
// also calls it, because a backup does not contain such resources.
func OnHost(i graph.Item) bool {
	if i.Copy || strings.HasSuffix(i.ID.Kind, "Template") {
		return false
	}
	if _, simulated, _ := unstructured.NestedMap(i.UnstructuredContent(), "spec", "backend", "simulated"); simulated {
		return false
	}
	return isHostedControlPlane(i.ID) || i.ID.Group == localv1.GroupVersion.Group && slices.Contains([]string{"LocalCluster", "LocalMachine", "LocalMachinePool"}, i.ID.Kind)
}

func isHostedControlPlane(id graph.ID) bool {
	return id.Group == hostedv1.GroupVersion.Group && id.Kind == "HostedControlPlane"
}

// clusterOf returns the name of the Cluster that an object belongs to, from its label or else from its owner. The host
// survey groups objects by it.
func clusterOf(i graph.Item) string {
	if name := i.GetLabels()[clusterv1.ClusterNameLabel]; name != "" {
		return name
	}
	for _, ref := range i.GetOwnerReferences() {
		if group, _, _ := strings.Cut(ref.APIVersion, "/"); ref.Kind == graph.Cluster && group == clusterv1.GroupVersion.Group {
			return ref.Name
		}
	}
	return ""
}

package host

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/plane/custody"
	"github.com/slipwayhq/slipway/internal/version"
)

// Facts are what clusters have on the host.
type Facts struct {
	// From and To are the instances, Target is the data directory of the target.
	From, To, Target string
	// Versions of Kubernetes that the target can run.
	Versions []string
	Clusters []Cluster
	// Strays are objects of none of these Clusters.
	Strays []graph.ID
}

// Cluster is what one has on the host.
type Cluster struct {
	// Key is its namespace and name.
	Key, UID string
	Planes   []Plane
	// Networks are its LocalClusters, Machines its LocalMachines with their containers' names.
	Networks []graph.ID
	Machines []Machine
	// Balancers are the names of folders of load balancers that are there.
	Balancers []string
	// Images is the name of the folder with the images that are kept for its later nodes, where there is one; ImagesThere tells that the
	// target has one of this name.
	Images      []string
	ImagesThere bool
	// Items are what the source has of Docker's.
	Items []custody.Item
	// Record is what the source notes already about giving it; nil: nothing.
	Record *custody.Record
}

// Machine is a LocalMachine.
type Machine struct {
	ID graph.ID
	// Object is its namespace and name.
	Object string
}

// Plane is a HostedControlPlane with a process.
type Plane struct {
	ID graph.ID
	// Name of its folder.
	Name string
	// Here and There tell that the source and the target have the folder.
	Here, There bool
	// Initialized and Restoring are what its annotations say.
	Initialized, Restoring bool
	// PID of its process, and the version that it runs; zero and that of the spec: it does not run.
	PID     int
	Version string
	// Relocatable tells that the process does not notice when its folder moves.
	Relocatable bool
}

// Holding is what of a Cluster is to be handed over.
type Holding struct {
	Record custody.Record
	planes []plane
}

// plane is what becomes of a control plane.
type plane struct {
	id   graph.ID
	name string
	pid  int
	// restart is why its process restarts; empty: it does not.
	restart string
}

// Survey says what is to be handed over, and what keeps it from that. It reads and writes nothing.
func Survey(f Facts) (out []Holding, problems []string) {
	for _, id := range f.Strays {
		problems = append(problems, id.String()+" has something on this host, and is of no Cluster that moves")
	}
	for _, c := range f.Clusters {
		h := Holding{Record: custody.Record{Cluster: c.Key, UID: c.UID, From: f.From, To: f.To, Balancers: c.Balancers, Images: c.Images, Items: c.Items}}
		begun := c.Record != nil && c.Record.Moving && c.Record.To == f.To
		if begun {
			h.Record = merged(*c.Record, h.Record)
		}
		for _, p := range c.Planes {
			if why := f.refuses(p, begun); why != "" {
				problems = append(problems, p.ID.String()+" "+why)
			}
			h.planes = append(h.planes, plane{id: p.ID, name: p.Name, pid: p.PID, restart: f.restarts(p)})
			if !slices.Contains(h.Record.Planes, p.Name) {
				h.Record.Planes = append(h.Record.Planes, p.Name)
			}
		}
		if c.Record != nil && c.Record.Moving && !begun {
			problems = append(problems, fmt.Sprintf("Cluster %s is being handed over to another data directory: complete that move, or take it back with --rollback, first", c.Key))
		}
		if len(c.Images) > 0 && c.ImagesThere {
			problems = append(problems, fmt.Sprintf("the target keeps images for a Cluster %s already: move %s/images/%s away", c.Key, f.Target, c.Key))
		}
		problems = append(problems, missing(c, h.Record.Items)...)
		if len(h.Record.Planes)+len(h.Record.Balancers)+len(h.Record.Images)+len(h.Record.Items) > 0 {
			out = append(out, h)
		}
	}
	return out, problems
}

// merged adds to a record what another one has beside it.
func merged(r, other custody.Record) custody.Record {
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

// refuses says why a control plane cannot be handed over.
func (f Facts) refuses(p Plane, begun bool) string {
	switch {
	case p.Here && p.There:
		return fmt.Sprintf("has a folder of its name in the target's data directory already: delete the control plane there, or move %s/planes/%s away if it is of none", f.Target, p.Name)
	case begun:
		return ""
	case !p.Here:
		return "has no data on this host: restore it from a backup, or delete the cluster"
	case p.Restoring:
		return "is being restored from a snapshot: wait until that is over"
	case !p.Initialized:
		return "is not noted to be initialized yet: wait a moment"
	case f.runs(p.Version) == "":
		return fmt.Sprintf("is of Kubernetes %s, which the target does not have: add it there first, with \"slipway versions add %s --data-dir %s\"", p.Version, p.Version, f.Target)
	}
	return ""
}

// runs returns the version that the target runs for one; empty: it has none.
func (f Facts) runs(want string) string {
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

// restarts says why the process of a control plane restarts on the way; empty: it does not, or there is none.
func (f Facts) restarts(p Plane) string {
	to := f.runs(p.Version)
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

// missing says which objects have nothing on the host that could be handed over: another would be created in its place.
func missing(c Cluster, items []custody.Item) []string {
	var out []string
	has := func(kind custody.Kind, object string) bool {
		return slices.ContainsFunc(items, func(i custody.Item) bool { return i.Kind == kind && i.Object == object })
	}
	for _, n := range c.Networks {
		if !has(custody.Network, n.Namespace+"/"+n.Name) {
			out = append(out, n.String()+" has no network on this host that is the source's")
		}
	}
	for _, m := range c.Machines {
		if !has(custody.Container, m.Object) {
			out = append(out, m.ID.String()+" has no container on this host that is the source's: delete its Machine")
		}
	}
	return out
}

// Steps say what is done.
func (h Holding) Steps() []string {
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
	counts := map[custody.Kind]int{}
	for _, i := range h.Record.Items {
		counts[i.Kind]++
	}
	var what []string
	for _, kind := range []custody.Kind{custody.Network, custody.Container, custody.Volume} {
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

// OnHost reports whether an object stands for something on the host of its management cluster.
func OnHost(i graph.Item) bool {
	if i.Copy || strings.HasSuffix(i.ID.Kind, "Template") {
		return false
	}
	if _, simulated, _ := unstructured.NestedMap(i.UnstructuredContent(), "spec", "backend", "simulated"); simulated {
		return false
	}
	return isPlane(i.ID) || i.ID.Group == localv1.GroupVersion.Group && slices.Contains([]string{"LocalCluster", "LocalMachine", "LocalMachinePool"}, i.ID.Kind)
}

func isPlane(id graph.ID) bool {
	return id.Group == hostedv1.GroupVersion.Group && id.Kind == "HostedControlPlane"
}

// clusterOf is the name of the Cluster that an object is of: its label, else its owner.
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

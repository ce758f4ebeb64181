package graph

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
)

// Labels of the clusterctl contract on objects and on the CRDs of their kinds.
const (
	// MoveLabel marks objects that move even though no Cluster owns them. Packages move and transfer read the label as
	// well.
	MoveLabel = "clusterctl.cluster.x-k8s.io/move"
	// MoveHierarchyLabel marks objects that move with all objects they own.
	MoveHierarchyLabel = infrastructure.MoveHierarchyLabel
)

// Cluster API kinds with special treatment.
const (
	Cluster            = "Cluster"
	clusterClass       = "ClusterClass"
	clusterResourceSet = "ClusterResourceSet"
	binding            = "ClusterResourceSetBinding"
)

// ID identifies an object in any management cluster. The journal of a move contains IDs, so the field names must not
// change.
type ID struct{ Group, Kind, Namespace, Name string }

// IDOf returns the ID of an object. Packages transfer, move and backup identify each object that they read with it.
func IDOf(o *unstructured.Unstructured) ID {
	k := o.GroupVersionKind()
	return ID{k.Group, k.Kind, o.GetNamespace(), o.GetName()}
}

// String formats the ID for messages.
func (i ID) String() string {
	if i.Namespace == "" {
		return i.Kind + " " + i.Name
	}
	return i.Kind + " " + i.Namespace + "/" + i.Name
}

// Compare orders IDs by kind, namespace and name. [Build] sorts its nodes by it, and [LeftBehind] its messages.
func (i ID) Compare(j ID) int {
	return cmp.Or(strings.Compare(i.Kind, j.Kind), strings.Compare(i.Group, j.Group),
		strings.Compare(i.Namespace, j.Namespace), strings.Compare(i.Name, j.Name))
}

// IsCore reports whether the ID has the given core or addons kind of Cluster API.
func (i ID) IsCore(kind string) bool {
	return i.Kind == kind && (i.Group == clusterv1.GroupVersion.Group || i.Group == addonsv1.GroupVersion.Group)
}

// Object is an object read from a management cluster. Packages move, transfer and backup read it; [Build] links it to
// others.
type Object struct {
	*unstructured.Unstructured
	// Marked and MarkedHierarchy mean that the CRD of its kind has the label [MoveLabel] or [MoveHierarchyLabel].
	Marked, MarkedHierarchy bool
	// Saved means that the object, an SSHHost, is part of a backup or of files whether a machine uses it or not.
	Saved bool
}

// Node is an object with its links, which determine whether it moves. [Build] creates it, and [Graph.Select] classifies
// it.
type Node struct {
	Object
	ID ID
	// Owners are the owners that were read.
	Owners []*Node
	// parents are the objects that it belongs to, including owners; dependencies are the other objects that must be
	// created before it.
	parents, dependencies []*Node
	// children is the inverse of parents, dependents the inverse of dependencies.
	children, dependents []*Node
	// roots are the roots that it belongs to, including itself if it is one.
	roots map[*Node]bool
	// boundToParents means that it belongs to its parents by more than a reference in their spec.
	boundToParents bool
}

// Graph has the objects read from the source of a move, with their links. [Build] creates it, and a move selects
// objects from it.
type Graph struct {
	nodes []*Node // sorted
	byID  map[ID]*Node
}

// Build builds the graph. If two objects have the same ID, the first is used. Package move calls it for the objects of
// the source, and for the files of a restore.
func Build(objects []Object) *Graph {
	g := &Graph{byID: make(map[ID]*Node, len(objects))}
	byUID := make(map[types.UID]*Node, len(objects))
	for _, o := range objects {
		n := &Node{Object: o, ID: IDOf(o.Unstructured), roots: map[*Node]bool{}}
		if g.byID[n.ID] != nil {
			continue
		}
		g.byID[n.ID] = n
		g.nodes = append(g.nodes, n)
		if uid := o.GetUID(); uid != "" {
			byUID[uid] = n
		}
	}
	slices.SortFunc(g.nodes, func(a, b *Node) int { return a.ID.Compare(b.ID) })
	clusters := g.clusterNames()
	for _, n := range g.nodes {
		g.linkOwners(n, byUID)
		g.addImplicitLinks(n, clusters)
	}
	g.propagateRoots()
	return g
}

// Get returns the node with an ID, or nil.
func (g *Graph) Get(id ID) *Node { return g.byID[id] }

// Roots returns the nodes of a Cluster API kind, sorted.
func (g *Graph) Roots(kind string) []*Node {
	var out []*Node
	for _, n := range g.nodes {
		if n.ID.IsCore(kind) {
			out = append(out, n)
		}
	}
	return out
}

func (g *Graph) clusterNames() map[string][]string {
	out := map[string][]string{}
	for _, n := range g.Roots(Cluster) {
		out[n.ID.Namespace] = append(out[n.ID.Namespace], n.ID.Name)
	}
	return out
}

// linkOwners adds links to the owners of an object. As in Kubernetes, references to other namespaces are ignored.
func (g *Graph) linkOwners(n *Node, byUID map[types.UID]*Node) {
	for _, ref := range n.GetOwnerReferences() {
		owner := byUID[ref.UID]
		if owner == nil || owner == n || !refersTo(ref, owner.ID) || owner.ID.Namespace != "" && owner.ID.Namespace != n.ID.Namespace {
			continue
		}
		n.Owners, n.boundToParents = append(n.Owners, owner), true
		n.belongsTo(owner)
	}
}

func refersTo(ref metav1.OwnerReference, id ID) bool {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && gv.Group == id.Group && ref.Kind == id.Kind && ref.Name == id.Name
}

func (n *Node) belongsTo(parent *Node) {
	if parent == nil || parent == n || slices.Contains(n.parents, parent) {
		return
	}
	n.parents = append(n.parents, parent)
	parent.children = append(parent.children, n)
}

// addImplicitLinks adds links that are not owner references.
func (g *Graph) addImplicitLinks(n *Node, clusters map[string][]string) {
	id := n.ID
	switch {
	case id.Group == "" && id.Kind == "Secret" && len(n.GetOwnerReferences()) == 0:
		if name := clusterOfSecret(clusters[id.Namespace], n); name != "" {
			n.boundToParents = true
			n.belongsTo(g.byID[ID{clusterv1.GroupVersion.Group, Cluster, id.Namespace, name}])
		}
	case id.IsCore(binding):
		name, _, _ := unstructured.NestedString(n.UnstructuredContent(), "spec", "clusterName")
		n.belongsTo(g.byID[ID{clusterv1.GroupVersion.Group, Cluster, id.Namespace, cmp.Or(name, id.Name)}])
	case IsSnapshotPolicy(id):
		g.linkPolicy(n, clusters[id.Namespace])
	case id.IsSSH(SSHHost):
		g.linkHost(n)
	case id.IsCore(Cluster):
		if class := g.byID[ClassOf(n.Unstructured)]; class != nil {
			n.dependencies = append(n.dependencies, class)
			class.dependents = append(class.dependents, n)
		}
	}
	g.linkReferences(n)
}

// IsSnapshotPolicy reports whether the ID is an EtcdSnapshotPolicy. Package move finds the policies of a transfer of
// data with it.
func IsSnapshotPolicy(id ID) bool {
	return id.Group == hostedv1.GroupVersion.Group && id.Kind == "EtcdSnapshotPolicy"
}

// linkPolicy links an EtcdSnapshotPolicy to the Clusters that it selects.
func (g *Graph) linkPolicy(n *Node, clusters []string) {
	for _, name := range clusters {
		if cluster := g.byID[ID{clusterv1.GroupVersion.Group, Cluster, n.ID.Namespace, name}]; PolicySelects(n.Unstructured, cluster.Unstructured) {
			n.belongsTo(cluster)
		}
	}
}

// PolicySelects reports whether an EtcdSnapshotPolicy selects a Cluster of its namespace. An invalid policy selects
// none.
func PolicySelects(policy, cluster *unstructured.Unstructured) bool {
	name, _, _ := unstructured.NestedString(policy.UnstructuredContent(), "spec", "clusterName")
	fields, selects, _ := unstructured.NestedMap(policy.UnstructuredContent(), "spec", "clusterSelector")
	if !selects {
		return name == cluster.GetName()
	}
	var selector metav1.LabelSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector) != nil {
		return false
	}
	matches, err := metav1.LabelSelectorAsSelector(&selector)
	return err == nil && matches.Matches(labels.Set(cluster.GetLabels()))
}

// clusterOfSecret returns the Cluster that a Secret without an owner belongs to: the Secret is named
// <cluster>-<purpose> with a purpose of Cluster API, or has the type of Cluster API's Secrets and the prefix
// <cluster>-. The longest matching Cluster name is used. Other Secrets with such a prefix belong to other programs.
func clusterOfSecret(names []string, n *Node) string {
	kind, _, _ := unstructured.NestedString(n.UnstructuredContent(), "type")
	best := ""
	for _, name := range names {
		rest, begins := strings.CutPrefix(n.ID.Name, name+"-")
		if !begins || rest == "" || len(name) <= len(best) {
			continue
		}
		if kind == string(clusterv1.ClusterSecretType) || secrets.Purpose(rest).IsKnown() {
			best = name
		}
	}
	return best
}

// ClassOf returns the ID of a Cluster's ClusterClass, for both API versions of the Cluster; empty if it has none.
// [Build] links Clusters with it, and a move reads the class at both management clusters.
func ClassOf(cluster *unstructured.Unstructured) ID {
	text := func(path ...string) string {
		s, _, _ := unstructured.NestedString(cluster.UnstructuredContent(), append([]string{"spec", "topology"}, path...)...)
		return s
	}
	name := cmp.Or(text("classRef", "name"), text("class"))
	if name == "" {
		return ID{}
	}
	return ID{clusterv1.GroupVersion.Group, clusterClass, cmp.Or(text("classRef", "namespace"), text("classNamespace"), cluster.GetNamespace()), name}
}

// owns reports whether n owns other, directly or indirectly. The depth is limited to detect cycles.
// Graph.linkReferences calls it, so that links and owners do not form a cycle.
func (n *Node) owns(other *Node, depth int) bool {
	const deepest = 16
	if depth > deepest {
		return false
	}
	return slices.ContainsFunc(other.Owners, func(o *Node) bool { return o == n || n.owns(o, depth+1) })
}

// propagateRoots sets the roots of all nodes.
func (g *Graph) propagateRoots() {
	for _, n := range g.nodes {
		_, alone := n.GetLabels()[MoveLabel]
		_, hierarchy := n.GetLabels()[MoveHierarchyLabel]
		switch {
		case n.movesOnlyWithMachine():
		case n.isRootByKind(), hierarchy, n.MarkedHierarchy, n.Saved, alone && n.ID.IsSSH(SSHHost): // it is useless without its credentials
			n.spread(n)
		case alone, n.Marked:
			n.roots[n] = true
		}
	}
}

func (n *Node) isRootByKind() bool {
	return n.ID.IsCore(Cluster) || n.ID.IsCore(clusterClass) || n.ID.IsCore(clusterResourceSet)
}

// spread adds the root to all descendants. Nodes that already have it are skipped, so that cycles terminate.
func (n *Node) spread(root *Node) {
	for pending := []*Node{n}; len(pending) > 0; {
		next := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if next.roots[root] {
			continue
		}
		next.roots[root] = true
		pending = append(pending, next.children...)
	}
}

package graph

import (
	"fmt"
	"slices"
	"strings"
)

// Scope specifies the objects to select, from the flags of a move or a backup. The journal of a move contains it, so
// its field names must not change.
type Scope struct {
	// Namespace is the namespace to move; empty for all.
	Namespace string
	// Clusters are the names of the Clusters to move; empty for all objects of the namespace.
	Clusters []string
}

// Item is a selected object. [Graph.Select] returns it. Moves, exports and backups process items in its order.
type Item struct {
	*Node
	// Copy means that the object is created if missing, and left at the source.
	Copy bool
}

// Selection has the objects to move. [Graph.Select] returns it.
type Selection struct {
	// Levels are the objects ordered by dependency, dependencies first.
	Levels [][]Item
	// Problems explain why the selection cannot be moved, with the remedy.
	Problems []string
	// refused are the objects with problems.
	refused map[ID]bool
}

// Items returns all objects of the selection, owners first.
func (s Selection) Items() []Item { return slices.Concat(s.Levels...) }

// Find returns the items of a Cluster API kind. Package move finds the Clusters of the selection with it.
func (s Selection) Find(kind string) []Item {
	var out []Item
	for _, i := range s.Items() {
		if i.ID.IsCore(kind) {
			out = append(out, i)
		}
	}
	return out
}

// Select determines the objects to move, to copy and to reject, by the rules in the package documentation. Moves,
// exports, backups and restores call it.
func (g *Graph) Select(w Scope) Selection {
	s := Selection{refused: map[ID]bool{}}
	chosen := map[*Node]*Item{}
	for _, name := range w.Clusters {
		if !slices.ContainsFunc(g.Roots(Cluster), func(n *Node) bool { return n.ID.Name == name && n.ID.Namespace == w.Namespace }) {
			s.Problems = append(s.Problems, fmt.Sprintf("Cluster %s does not exist in namespace %s: check the name", name, w.Namespace))
		}
	}
	for _, n := range g.nodes {
		switch item, problem := w.classify(n); {
		case problem != "":
			s.refused[n.ID] = true
			s.Problems = append(s.Problems, problem)
		case item != nil:
			chosen[n] = item
		}
	}
	var circle []string
	s.Levels, circle = levels(g.nodes, chosen)
	if len(circle) > 0 {
		s.Problems = append(s.Problems, fmt.Sprintf("the owner references of these objects form a cycle: %s; remove one of the owner references", strings.Join(circle, ", ")))
	}
	return s
}

// classify determines the treatment of one object. It returns nil if the object is not selected.
func (w Scope) classify(n *Node) (*Item, string) {
	if len(n.roots) == 0 {
		return nil, ""
	}
	if n.ID.Namespace == "" || w.Namespace != "" && n.ID.Namespace != w.Namespace {
		if !w.reaches(n) {
			return nil, ""
		}
		if !n.isOfHost() {
			return &Item{Node: n, Copy: true}, ""
		}
	}
	if other := n.sharedCredentials(); other != nil && n.isOfHost() {
		return nil, fmt.Sprintf("%s belongs to an SSHHost that moves, but %s, which stays, has its credentials in it, too: give that one a Secret of its own", n.ID, other.ID)
	}
	copied := n.isGlobal() || n.isOnlyReferenced()
	if len(w.Clusters) == 0 {
		return &Item{Node: n, Copy: copied}, ""
	}
	item, problem := w.classifyForClusters(n)
	if item != nil && copied {
		item.Copy = true
	}
	return item, problem
}

// isGlobal reports whether an object belongs to cluster-scoped objects, such as the credentials of an identity that
// Clusters of all namespaces use. If it also belongs to a Cluster, it is global only if it can exist in two management
// clusters.
func (n *Node) isGlobal() bool {
	global, all := false, true
	for root := range n.roots {
		global, all = global || root.ID.Namespace == "", all && root.ID.Namespace == ""
	}
	return all || global && canBeDuplicated(n)
}

// isOnlyReferenced reports whether an object is a Secret or ConfigMap that the selection only refers to. Another
// program may use it, too.
func (n *Node) isOnlyReferenced() bool { return n.ID.Group == "" && !n.boundToParents && !n.roots[n] }

// reaches reports whether an object outside of the namespace belongs to the selection. Cluster-scoped objects always
// do, because they are labelled.
func (w Scope) reaches(n *Node) bool {
	for root := range n.roots {
		if root.ID.IsSSH(SSHHost) || root.ID.Namespace == "" || w.Namespace == "" || root.ID.Namespace == w.Namespace || root.ID.IsCore(clusterClass) && w.uses(root) {
			return true
		}
	}
	return false
}

func (w Scope) classifyForClusters(n *Node) (*Item, string) {
	var others []string
	chosen, marked := false, false
	if n.isOfHost() && n.isFree() {
		return nil, "" // it cannot be in two management clusters, and no Cluster needs it
	}
	for root := range n.roots {
		switch {
		case root.ID.IsCore(Cluster) && slices.Contains(w.Clusters, root.ID.Name):
			chosen = true
		case root.ID.IsCore(Cluster):
			others = append(others, root.ID.Name)
		case root.ID.IsCore(clusterClass):
			marked = marked || w.uses(root)
		case root.ID.IsCore(clusterResourceSet):
			marked = marked || w.binds(root)
		default:
			marked = true
		}
	}
	switch {
	case chosen && len(others) == 0 && !n.ID.IsCore(clusterResourceSet):
		return &Item{Node: n}, ""
	case !chosen && (!marked || len(others) > 0):
		return nil, ""
	case chosen && len(others) > 0 && !canBeDuplicated(n):
		slices.Sort(others)
		return nil, fmt.Sprintf("%s also belongs to Cluster %s and cannot exist in two management clusters: move the Clusters together", n.ID, strings.Join(others, ", "))
	}
	return &Item{Node: n, Copy: true}, ""
}

// isFree reports whether an object belongs to SSHHosts that no Cluster uses.
func (n *Node) isFree() bool {
	for root := range n.roots {
		if !root.ID.IsSSH(SSHHost) {
			return false
		}
	}
	return true
}

// uses reports whether a Cluster to move uses the class.
func (w Scope) uses(class *Node) bool {
	return class.hasDependent(func(n *Node) bool {
		return n.ID.Namespace == w.Namespace && (len(w.Clusters) == 0 || slices.Contains(w.Clusters, n.ID.Name))
	})
}

// binds reports whether the resource set is applied to a Cluster to move.
func (w Scope) binds(set *Node) bool {
	return slices.ContainsFunc(set.children, func(n *Node) bool {
		return n.ID.IsCore(binding) && slices.ContainsFunc(n.parents, func(p *Node) bool {
			return p.ID.IsCore(Cluster) && slices.Contains(w.Clusters, p.ID.Name)
		})
	})
}

// hasDependent reports whether an object that fulfills the condition depends on this one.
func (n *Node) hasDependent(is func(*Node) bool) bool { return slices.ContainsFunc(n.dependents, is) }

// canBeDuplicated reports whether an object can exist in two management clusters: it is a template or data that no
// controller acts on, or a policy, which in each management cluster applies to the Clusters there.
func canBeDuplicated(n *Node) bool {
	if n.ID.Group == "" {
		return n.ID.Kind == "Secret" || n.ID.Kind == "ConfigMap"
	}
	return strings.HasSuffix(n.ID.Kind, "Template") || n.ID.IsCore(clusterClass) || n.ID.IsCore(clusterResourceSet) || IsSnapshotPolicy(n.ID)
}

// levels sorts the chosen objects so that each follows its owners and other dependencies. It also returns the objects
// in dependency cycles.
func levels(nodes []*Node, chosen map[*Node]*Item) (out [][]Item, circle []string) {
	done := map[*Node]bool{}
	for len(done) < len(chosen) {
		var level []Item
		for _, n := range nodes {
			waits := func(m *Node) bool { return chosen[m] != nil && !done[m] }
			if item := chosen[n]; item != nil && !done[n] && !slices.ContainsFunc(n.Owners, waits) && !slices.ContainsFunc(n.needs(), waits) {
				level = append(level, *item)
			}
		}
		if len(level) == 0 {
			for _, n := range nodes {
				if chosen[n] != nil && !done[n] {
					circle = append(circle, n.ID.String())
				}
			}
			return out, circle
		}
		for _, item := range level {
			done[item.Node] = true
		}
		out = append(out, level)
	}
	return out, nil
}

// needs returns the dependencies of an object besides its owners: its class, and the Clusters that it belongs to, so
// that it is paused from the start.
func (n *Node) needs() []*Node {
	if n.ID.IsCore(Cluster) {
		return n.dependencies
	}
	out := slices.Clone(n.dependencies)
	for root := range n.roots {
		if root != n && root.ID.IsCore(Cluster) {
			out = append(out, root)
		}
	}
	return out
}

package rootcause

import (
	"cmp"
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Problems returns the chains of objects, one for each root cause: first those that need a user, with causes that make
// a Cluster unavailable before others, then those that end without one. Older causes come first. `slipway explain`
// lists them.
func Problems(g Graph, of []Ref, now time.Time) []Chain {
	s := newSearch(g, now)
	chains := map[Ref]Chain{}
	for _, ref := range of {
		if c, found := s.explain(ref); found {
			chains[ref] = c
		}
	}
	best, affected := map[Ref]Chain{}, map[Ref][]Ref{}
	for _, ref := range of {
		c, found := chains[ref]
		if !found {
			continue
		}
		root := finalRoot(c, chains)
		affected[root] = append(affected[root], ref)
		if root != c.Root().Object {
			continue
		}
		if known, seen := best[root]; !seen || s.isBetter(c, known) {
			best[root] = c
		}
	}
	var out []Chain
	for root, c := range best {
		if !s.isRepeated(c, best) {
			c.Affects = s.affectedClusters(root, affected[root])
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b Chain) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), compareSince(a.Root().Since, b.Root().Since), a.Root().Object.compare(b.Root().Object))
	})
	return out
}

// finalRoot returns the root cause of a chain. It is another object than the end of the chain if that object has a chain of its
// own: the search considers only the own state of an object that it reaches from a dependent.
func finalRoot(c Chain, chains map[Ref]Chain) Ref {
	end := c.Root().Object
	own, found := chains[end]
	if root := own.Root().Object; found && root != end && own.NeedsUser() == c.NeedsUser() && chains[root].Root().Object == root {
		return root
	}
	return end
}

// affectedClusters returns the Clusters of objects with the same root cause, that of the root first.
func (s *search) affectedClusters(root Ref, of []Ref) []Ref {
	var out []Ref
	for _, ref := range of {
		if cluster := s.clusterOf(ref); cluster.Name != "" {
			out = append(out, cluster)
		}
	}
	own := s.clusterOf(root)
	slices.SortFunc(out, Ref.compare)
	out = slices.DeleteFunc(slices.Compact(out), func(r Ref) bool { return r == root || r == own })
	if _, exists := s.graph.Get(own); exists && own != root {
		out = slices.Insert(out, 0, own)
	}
	return out
}

// isBetter reports whether a chain shows the effect of its root cause better than another: it begins with the Cluster of the
// root, or with another object of that Cluster, or it is longer.
func (s *search) isBetter(a, b Chain) bool {
	isOwn := func(c Chain) int {
		switch first, cluster := c.Links[0].Object, s.clusterOf(c.Root().Object); {
		case first == cluster:
			return 2
		case s.clusterOf(first) == cluster:
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(isOwn(a), isOwn(b)), cmp.Compare(len(a.Links), len(b.Links))) > 0
}

// clusterOf returns the Cluster that an object belongs to.
func (s *search) clusterOf(of Ref) Ref {
	u, found := s.graph.Get(of)
	if !found {
		return Ref{}
	}
	return clusterRef(of.Namespace, newObject(of, u).cluster())
}

// isRepeated reports whether an owner of the root of a chain is the root of another chain with the same message and remedy, as
// when a MachineSet and its MachineDeployment wait for the same template.
func (s *search) isRepeated(c Chain, others map[Ref]Chain) bool {
	u, found := s.graph.Get(c.Root().Object)
	if !found {
		return false
	}
	for _, owner := range ownersOf(u) {
		if other, known := others[owner]; known && other.Remedy.Text == c.Remedy.Text && other.Root().Message == c.Root().Message {
			return true
		}
	}
	return false
}

// rank sorts chains by their effect: unavailable Clusters first, objects that are paused on purpose last.
func rank(c Chain) int {
	switch first := c.Links[0]; {
	case c.IsWarning():
		return 4
	case !c.NeedsUser():
		return 3
	case c.weight == weightPaused:
		return 2
	case first.Object.Kind == clusterv1.ClusterKind && classes[first.Type] != classProgress:
		return 0
	}
	return 1
}

package ui

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/fleet"
	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/internal/rootcause"
)

// Limits of the cluster page.
const (
	maxTreeRows      = 1000
	maxClusterEvents = 500
	maxObjects       = 5000
	// maxMembers is the maximum number of links of a row for several objects in the same state.
	maxMembers = 50
)

// clusterContent is the input of templates/cluster.html, which reads its fields by name.
type clusterContent struct {
	fleet.Cluster
	Versions  string
	Age       age
	DetailURL string
	Chain     *chainView
	Rollout   rollout
	LaneURLs  map[string]string
	Tree      []treeRow
	TreeCut   cut
	// TreeProblem is the reason why objects are missing in the tree, or empty.
	TreeProblem string
	// ShowAll is true if healthy rows are not folded, and ToggleURL changes that.
	ShowAll   bool
	ToggleURL string
	Blocking  []hookView
	Timeline  timelineView
	Commands  []string
}

// hookView is a handler that blocks the topology.
type hookView struct {
	Message string
	Since   age
}

// treeRow is one row of the tree of package describe.
type treeRow struct {
	Depth   int
	Role    string
	Kind    string
	Name    string
	URL     string
	Members []memberLink
	// MembersCut are the numbers of links and of members.
	MembersCut cut
	Replicas   string
	Status     string
	Good       bool
	Headline   string
	Reason     string
	Since      age
	Messages   []string
	Deleting   bool
	Issues     []treeIssue
	ID         string
	Remedying  string
}

type treeIssue struct {
	Type, Status, Message string
	Since                 age
	Good                  bool
}

type memberLink struct{ Name, URL string }

// timelineView is a timeline with links.
type timelineView struct {
	timeline
	Rows []timelineRow
	// ObjectsCut and EventsCut describe which part of the objects and Events the timeline considers.
	ObjectsCut, EventsCut cut
}

type timelineRow struct {
	entry
	Link link
	Age  age
}

// clusterPage shows one cluster. [Server.Handler] routes to it.
func (s *Server) clusterPage(q request) (any, error) {
	key := fleet.Key{Namespace: q.PathValue("namespace"), Name: q.PathValue("name")}
	source := q.source
	row, ok := source.board.Cluster(key)
	if state := source.readState(); !ok && !state.isComplete() {
		return nil, fault.New(fault.Unreachable, "ClustersNotRead", "it is unknown whether the cluster %s/%s exists, because the Clusters have not been read; this page is updated after they have been", key.Namespace, key.Name)
	}
	if !ok {
		return nil, fault.New(fault.Gone, "ClusterNotFound", "there is no cluster %s/%s", key.Namespace, key.Name)
	}
	out := clusterContent{
		Cluster: row, Versions: row.VersionText(), Age: newAge(row.Created, q.now), DetailURL: source.detailURL(row.Ref()),
		ShowAll: q.URL.Query().Get("all") != "", ToggleURL: "?all=1", Commands: clusterCommands(source, key),
	}
	if out.ShowAll {
		out.ToggleURL = "?"
	}
	if chain, found := source.explain(q.Context(), row.Ref(), q.now); found {
		out.Chain = source.chain(chain, q.now)
	}
	out.addTree(q, key)
	out.addRollout(q, key)
	out.addTimeline(q, key)
	return out, nil
}

func clusterCommands(s *Source, key fleet.Key) []string {
	flags := " -n " + key.Namespace + s.Flags
	return []string{"slipway describe cluster " + key.Name + flags, "slipway explain cluster/" + key.Name + flags}
}

// addTree adds the tree of package describe, and the hooks that block the topology. If a read fails, the other objects are
// shown.
func (c *clusterContent) addTree(q request, key fleet.Key) {
	ctx, cancel := context.WithTimeout(q.Context(), eventTimeout)
	defer cancel()
	options := describe.Options{Grouping: !c.ShowAll, Echo: c.ShowAll, ShowMachineSets: c.ShowAll, ShowResourceSets: c.ShowAll}
	snapshot, err := describe.ReadAvailable(ctx, q.source.mirror.Reader(), client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, options)
	c.TreeProblem = treeProblem(err)
	if snapshot.Cluster == nil {
		return
	}
	t := treeBuilder{source: q.source, now: q.now}
	t.add(describe.Build(snapshot, options), 0)
	c.Tree, c.TreeCut = limit(t.rows, maxTreeRows)
	for _, h := range snapshot.Hooks {
		c.Blocking = append(c.Blocking, hookView{Message: h.Message, Since: newAge(h.LastTransitionTime.Time, q.now)})
	}
}

// treeProblem describes the failed reads of a tree.
func treeProblem(err error) string {
	switch {
	case err == nil:
		return ""
	case fault.KindOf(err) == fault.Unreachable:
		return "The API server does not respond, so not all objects are shown."
	}
	return "Not all objects are shown: " + err.Error()
}

// treeBuilder turns a tree into rows.
type treeBuilder struct {
	source *Source
	now    time.Time
	rows   []treeRow
}

func (t *treeBuilder) add(o *describe.Object, depth int) {
	if o.Role == "Hooks" {
		return // shown on its own
	}
	t.rows = append(t.rows, t.row(o, depth))
	for _, child := range o.Children {
		t.add(child, depth+1)
	}
}

func (t *treeBuilder) row(o *describe.Object, depth int) treeRow {
	group := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).Group
	of := rootcause.Ref{Group: group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
	row := treeRow{Depth: min(depth, 8), Role: o.Role, Kind: o.Kind, Name: o.Name, Deleting: o.DeletedAt != nil, Good: true, ID: rowID("t", o.Role, o.Kind, cmp.Or(o.Name, strings.Join(o.Members[:min(1, len(o.Members))], "")))}
	if o.Missing == "" && o.Kind != "" && o.Name != "" {
		row.URL = t.source.objectURL(of)
		if depth == 0 {
			row.URL = t.source.detailURL(of)
		}
	}
	var members []string
	members, row.MembersCut = limit(o.Members, maxMembers)
	for _, name := range members {
		of.Name = name
		row.Members = append(row.Members, memberLink{Name: name, URL: t.source.objectURL(of)})
	}
	if o.Unread {
		row.Good, row.Status = false, "Not read"
		return row
	}
	if o.Missing != "" {
		row.Good, row.Status, row.Messages = false, "Missing", []string{o.Missing}
		return row
	}
	row.Replicas = replicasText(o.Replicas)
	if head := o.Headline(); head != nil {
		row.Headline, row.Status, row.Reason, row.Since = head.Type, string(head.Status), head.Reason, newAge(head.LastTransitionTime.Time, t.now)
		row.Good = describe.HasExpectedStatus(*head, nil)
		if head.Message != "" && !row.Good {
			row.Messages = textLines(head.Message)
		}
	}
	for _, c := range o.Shown() {
		row.Issues = append(row.Issues, treeIssue{Type: c.Type, Status: string(c.Status), Message: cmp.Or(c.Message, c.Reason), Since: newAge(c.LastTransitionTime.Time, t.now), Good: describe.HasExpectedStatus(c, nil)})
	}
	if r := o.Remediation; r != nil && r.BlockedReason == "" {
		row.Remedying = "MachineHealthCheck " + r.HealthCheck + " remediates it at " + r.At.UTC().Format("15:04:05") + " UTC: " + r.Condition
	}
	return row
}

func replicasText(r *describe.Replicas) string {
	if r == nil || r.Desired == nil {
		return ""
	}
	v := fleet.Replicas{Desired: *r.Desired}
	if r.Ready != nil {
		v.Ready = *r.Ready
	}
	return newReplicaView(&v).Text
}

func (c *clusterContent) addRollout(q request, key fleet.Key) {
	var lives []life
	c.LaneURLs = map[string]string{}
	for _, u := range q.source.machinesOf(key) {
		if m, ok := rootcause.Decode[clusterv1.Machine](u); ok {
			lives = append(lives, newLife(m))
			c.LaneURLs[m.Name] = q.source.objectURL(rootcause.RefOf(u))
		}
	}
	for _, r := range q.source.removedOf(key, q.now.Add(-history)) {
		if m, ok := rootcause.Decode[clusterv1.Machine](r.machine); ok {
			l := newLife(m)
			l.removed = r.at
			lives = append(lives, l)
		}
	}
	c.Rollout = newRollout(lives, q.now)
}

// machinesOf returns the Machines of a cluster.
func (s *Source) machinesOf(key fleet.Key) (out []*unstructured.Unstructured) {
	kind := schema.GroupKind{Group: clusterv1.GroupVersion.Group, Kind: "Machine"}
	for _, u := range s.store.Objects(kind, key.Namespace) {
		if u.GetLabels()[clusterv1.ClusterNameLabel] == key.Name {
			out = append(out, u)
		}
	}
	return out
}

// objectsOf returns the objects of a cluster of all copied kinds, up to a limit.
func (s *Source) objectsOf(key fleet.Key) ([]*unstructured.Unstructured, cut) {
	var out []*unstructured.Unstructured
	for _, kind := range s.mirror.Kinds() {
		if !kind.Namespaced {
			continue
		}
		for _, u := range s.store.Objects(kind.GroupKind(), key.Namespace) {
			if kind.Kind != "ClusterClass" && slices.Contains(s.store.ClustersOf(u), key) {
				out = append(out, u)
			}
		}
	}
	return limit(out, maxObjects)
}

func (c *clusterContent) addTimeline(q request, key fleet.Key) {
	objects, objectsCut := q.source.objectsOf(key)
	known := map[rootcause.Ref]bool{}
	for _, u := range objects {
		known[rootcause.RefOf(u)] = true
	}
	removed := q.source.removedOf(key, q.now.Add(-history))
	for _, r := range removed {
		known[rootcause.RefOf(r.machine)] = true
	}
	all, problem := q.source.events.read(q.Context(), eventQuery{Namespace: key.Namespace}, q.now)
	isKnown := func(of rootcause.Ref) bool { return known[of] }
	events, eventsCut := eventsOf(all, isKnown, maxClusterEvents)
	c.Timeline = q.source.timelineView(newTimeline(happened{
		objects: objects, events: events, removed: removed, actions: q.source.actions.after(q.now.Add(-history), isKnown),
	}, q.now), q.now)
	c.Timeline.Problem, c.Timeline.ObjectsCut, c.Timeline.EventsCut = problem, objectsCut, eventsCut
}

func (s *Source) timelineView(t timeline, now time.Time) timelineView {
	out := timelineView{timeline: t}
	for _, e := range t.Entries {
		out.Rows = append(out.Rows, timelineRow{entry: e, Link: s.link(e.Of), Age: newAge(e.At, now)})
	}
	return out
}

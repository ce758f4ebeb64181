package move

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/transfer"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Plan is the plan of a move or an export. --dry-run prints its steps. The journal contains it, so the names of
// exported fields must not change.
type Plan struct {
	// Namespaces are the namespaces to create at the target.
	Namespaces []string
	// Entries are the objects in creation order.
	Entries []transfer.Entry
	// Problems prevent the execution of the plan.
	Problems []string
	// Export means that the objects are written to files and remain at the source.
	Export bool `json:",omitempty"`
	// Host describes the transfer of host resources.
	Host []string `json:",omitempty"`
	// Data are the control planes whose data is transferred.
	Data []ControlPlane `json:",omitempty"`
	// Notes are hints about things that do not move.
	Notes []string `json:",omitempty"`

	hostTransfers []ClusterResources
	// replaced are Machines that are replaced at the target; hosted are objects that are deleted at the source with
	// their host resources.
	replaced, hosted []graph.ID
}

// Steps describes the steps of the plan in execution order. `slipway move` displays them.
func (p Plan) Steps() []string {
	if p.Export {
		return p.exportSteps()
	}
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, ns := range p.Namespaces {
		add("target: create Namespace %s", ns)
	}
	add("both: write the journal ConfigMap %s", journalName)
	for _, id := range p.roots() {
		add("source: pause %s", id)
	}
	for _, e := range p.Entries {
		switch {
		case e.Copy && e.Existed:
			add("target: keep %s as it is", e.At())
		case e.Copy:
			add("target: create %s (it stays at the source, too)", e.At())
		case e.Existed:
			add("target: update %s", e.At())
		default:
			add("target: create %s", e.At())
		}
	}
	add("target: read everything back and compare it with the source")
	out = append(out, p.Host...)
	for _, d := range p.Data {
		out = append(out, d.Steps()...)
	}
	for _, e := range slices.Backward(p.Entries) {
		switch {
		case e.Copy:
		case slices.Contains(p.hosted, e.ID):
			add("source: delete %s, with what it has on the host", e.ID)
		default:
			add("source: delete %s", e.ID)
		}
	}
	for _, id := range p.replaced {
		add("target: replace %s: its node is created again, and the Pods on it end", id)
	}
	for _, id := range p.roots() {
		add("target: resume %s", id)
	}
	for _, d := range p.Data {
		add("target: wait until the API of Cluster %s/%s answers there", d.ID.Namespace, d.Cluster)
	}
	add("both: delete the journal")
	return append(out, p.Notes...)
}

// exportSteps describes the steps of an export.
func (p Plan) exportSteps() []string {
	var out []string
	for _, id := range p.roots() {
		out = append(out, fmt.Sprintf("source: pause %s", id))
	}
	for _, e := range p.Entries {
		out = append(out, fmt.Sprintf("directory: write %s", e.ID))
	}
	for _, id := range p.roots() {
		out = append(out, fmt.Sprintf("source: resume %s", id))
	}
	return out
}

// roots returns the SSHHosts, followed by the ClusterClasses and the Clusters, that are paused during the move.
func (p Plan) roots() []graph.ID {
	var out []graph.ID
	for _, group := range inPauseOrder(p.Entries) {
		for _, e := range group {
			out = append(out, e.ID)
		}
	}
	return out
}

// inPauseOrder returns the entries that are paused during the move, in groups that are resumed one after the other.
func inPauseOrder(entries []transfer.Entry) [][]transfer.Entry {
	moved := slices.DeleteFunc(slices.Clone(entries), func(e transfer.Entry) bool { return e.Copy })
	return graph.InPauseOrder(moved, func(e transfer.Entry) graph.ID { return e.ID })
}

// count returns the numbers of moved and copied objects, for messages about the progress.
func (p Plan) count() (moved, copied int) {
	for _, e := range p.Entries {
		if e.Copy {
			copied++
		} else {
			moved++
		}
	}
	return moved, copied
}

// Err returns a fault with the problems; nil if there are none. Commands stop with it before anything is changed.
func (p Plan) Err() error {
	const most = 20
	if len(p.Problems) == 0 {
		return nil
	}
	shown := p.Problems
	if len(shown) > most {
		shown = append(slices.Clone(shown[:most]), fmt.Sprintf("and %d more", len(p.Problems)-most))
	}
	return fault.New(fault.Invalid, "CannotMove", "nothing was changed, because of what follows:\n  - %s", strings.Join(shown, "\n  - "))
}

// planInput is the state of both management clusters, the input of a plan. Move.readInput fills it in.
type planInput struct {
	sourceState
	left            []graph.UnmovedObject     // objects linked to the selection that do not move
	noNamespace     bool                      // the namespace does not exist at the source
	at              func(graph.ID) graph.ID   // maps IDs to IDs at the target
	target          map[graph.ID]graph.Object // objects at the target
	namespaces      map[string]bool           // namespaces at the target
	targetProviders []graph.Provider
	// host are the shared host resources; nil if there are none, for the reason hostProblem.
	host        *HostResources
	hostProblem string
	// data is the state of both management clusters for a move with data; otherwise nil.
	data *dataInput
	// targetHosts are the SSHHosts of the target, if SSHHosts are to be moved.
	targetHosts []graph.Object
	// targetLabels are the labels of the Namespaces of the target.
	targetLabels map[string]map[string]string
	directory    bool // objects are written to files, and remain at the source
	resumed      bool // the move itself has paused the objects
}

// makePlan computes the plan: for --dry-run, at the start of a move or an export, and again after the source is paused.
// It has no side effects.
func makePlan(f planInput) Plan {
	p := Plan{Problems: append(slices.Clone(f.selection.Problems), graph.LeftBehind(f.left)...), Export: f.directory}
	if !f.directory {
		p.Problems = append(p.Problems, graph.MissingProviders(f.sourceProviders, f.targetProviders)...)
	}
	missing := map[transfer.Kind]bool{}
	for level, items := range f.selection.Levels {
		for _, i := range items {
			p.Problems = append(p.Problems, f.check(i)...)
			if k := transfer.KindOf(f.kinds, i.ID); k.Missing && !missing[k] {
				missing[k] = true
				p.Problems = append(p.Problems, fmt.Sprintf("the target does not have the kind %s (%s) in a version of the source's: install or upgrade its provider there", k.Kind, k.Group))
			}
			p.add(f, i, level)
		}
	}
	if !f.directory {
		p.survey(f)
		p.checkHosts(f)
		p.note(f)
	}
	switch {
	case f.noNamespace:
		p.Problems = append(p.Problems, "there is no such namespace at the source: check the name of the namespace")
	case len(p.Entries) == 0 && len(p.Problems) == 0:
		p.Problems = append(p.Problems, "there is nothing that could be moved in this namespace: check the name of the namespace")
	}
	return p
}

// note adds notes about stored snapshots that do not move.
func (p *Plan) note(f planInput) {
	for _, i := range f.selection.Items() {
		if !graph.IsSnapshotPolicy(i.ID) {
			continue
		}
		folder, is, _ := unstructured.NestedMap(i.UnstructuredContent(), "spec", "destination", "folder")
		switch path, _ := folder["path"].(string); {
		case is && path == "":
			p.Notes = append(p.Notes, fmt.Sprintf("note: the snapshots that %s has stored stay in the data directory of the source; the target begins with none", i.ID))
		case is:
			p.Notes = append(p.Notes, fmt.Sprintf("note: the snapshots that %s has stored stay in %s on the source's host; the target lists them if it has the same folder there", i.ID, path))
		}
	}
}

// survey adds the transfer of host resources.
func (p *Plan) survey(f planInput) {
	if f.data != nil {
		p.surveyData(f)
		return
	}
	if f.host == nil {
		onHost := false
		for _, i := range f.selection.Items() {
			if OnHost(i) {
				p.Problems, onHost = append(p.Problems, i.ID.String()+" stands for something on the host of this management cluster, which cannot be handed over"), true
			}
		}
		if onHost {
			p.Problems = append(p.Problems, fmt.Sprintf("nothing can be handed over, because %s; take the data of hosted control planes along with --with-data, delete these clusters here and create them there, or keep them in this management cluster",
				cmp.Or(f.hostProblem, "it is not known that both management clusters are on one host")))
		}
		return
	}
	holdings, problems := hostSurvey(*f.host)
	p.hostTransfers, p.Problems = holdings, append(p.Problems, problems...)
	for _, h := range holdings {
		p.Host = append(p.Host, h.Steps()...)
	}
}

// add adds the entry of an item, and its namespace if it is missing.
func (p *Plan) add(f planInput, i graph.Item, level int) {
	e := transfer.Entry{ID: i.ID, Version: i.GroupVersionKind().Version, Level: level, Copy: i.Copy}
	to := f.at(i.ID)
	if to != i.ID {
		e.To = &to
	}
	existing, exists := f.target[to]
	e.Existed = exists
	if exists && !e.Copy && to.IsCore(graph.Cluster) && !graph.IsClusterPaused(existing.Unstructured) {
		p.Problems = append(p.Problems, fmt.Sprintf("the target has a %s already, which is not paused: it would be overwritten; delete or rename one of the two", to))
	}
	if ns := to.Namespace; ns != "" && !f.namespaces[ns] && !slices.Contains(p.Namespaces, ns) {
		p.Namespaces = append(p.Namespaces, ns)
	}
	p.Entries = append(p.Entries, e)
}

// check returns the problems that prevent the move of an object. Conditions that held when the move started are not
// checked again.
func (f planInput) check(i graph.Item) []string {
	if f.resumed && i.GetDeletionTimestamp() == nil {
		return nil
	}
	return graph.CheckItem(i)
}

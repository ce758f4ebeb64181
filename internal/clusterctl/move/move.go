package move

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	movegraph "github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/transfer"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/pause"
)

// Options are the options of a move.
type Options struct {
	// What is the scope of the move.
	What movegraph.Scope
	// Report is called with a progress message for each stage; it may be nil.
	Report func(line string)
	// Mutate changes objects before they are created at the target, for example their namespace. It is also called with
	// objects without spec to determine their IDs at the target.
	Mutate []func(*unstructured.Unstructured) error
	// Timeout is the timeout for providers to release objects, and for the deletion of objects. Zero means two
	// minutes.
	Timeout time.Duration
	// Host has the host resources of both management clusters; nil if they do not share a host, for the reason Apart.
	Host        *HostPair
	HostProblem string
	// WithData transfers the data of hosted control planes with the options in Data. Host resources are not transferred
	// then.
	WithData bool
	Data     DataOptions
	// Now is the clock for the names of snapshots; nil means the system clock.
	Now func() time.Time
	// Sleep waits, or returns the error of the context; nil means real time.
	Sleep func(context.Context, time.Duration) error
}

func (o Options) withDefaults() Options {
	if o.Report == nil {
		o.Report = func(string) {}
	}
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Minute
	}
	if o.WithData {
		o.Host = nil
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = pause.Sleep
	}
	return o
}

// Move is a move between two management clusters.
type Move struct {
	Options
	source, target *transfer.Endpoint
}

// New returns a move. It does not access the management clusters yet.
func New(source, target client.Client, o Options) *Move {
	return &Move{Options: o.withDefaults(), source: transfer.New("source", source), target: transfer.New("target", target)}
}

// Result is the result of a move.
type Result struct {
	Moved int `json:"moved"`
	// Copied is the number of objects that were created and also remain at the source.
	Copied int `json:"copied"`
	// Reverted means that everything was restored at the source.
	Reverted bool `json:"reverted,omitempty"`
}

// Plan reads both management clusters and returns the plan of [Move.Run]. It writes nothing.
func (m *Move) Plan(ctx context.Context) (Plan, error) {
	if _, _, err := m.identities(ctx); err != nil {
		return Plan{}, err
	}
	switch j, _, err := readJournal(ctx, m.source, journalNamespace(m.What)); {
	case err != nil:
		return Plan{}, err
	case j != nil:
		return Plan{}, otherMove(m.source, journalNamespace(m.What))
	}
	p, err := m.plan(ctx)
	if err != nil {
		return p, err
	}
	return p, p.Err()
}

func (m *Move) plan(ctx context.Context) (Plan, error) {
	f, err := m.facts(ctx)
	if err != nil {
		return Plan{}, err
	}
	return makePlan(f), nil
}

func (m *Move) identities(ctx context.Context) (from, to types.UID, err error) {
	if from, err = m.source.Identity(ctx); err != nil {
		return "", "", err
	}
	if to, err = m.target.Identity(ctx); err != nil {
		return "", "", err
	}
	if from == to {
		return "", "", fault.New(fault.Invalid, "SameCluster", "source and target are the same management cluster: name another with --to-kubeconfig or --to-kubeconfig-context")
	}
	return from, to, nil
}

// facts reads the input of a plan.
func (m *Move) facts(ctx context.Context) (planInput, error) {
	var f planInput
	err := m.readSource(ctx, &f)
	if err != nil {
		return f, err
	}
	if f.targetProviders, err = m.target.Providers(ctx); err != nil {
		return f, err
	}
	if f.namespaces, err = m.target.Namespaces(ctx); err != nil {
		return f, err
	}
	var ids []movegraph.ID
	versions := map[movegraph.ID]string{}
	for _, i := range f.selection.Items() {
		if !transfer.KindOf(f.kinds, i.ID).Missing {
			ids = append(ids, f.at(i.ID))
			versions[f.at(i.ID)] = i.GroupVersionKind().Version
		}
	}
	if f.target, err = m.target.Find(ctx, ids, func(id movegraph.ID) string { return versions[id] }); err != nil {
		return f, err
	}
	if err := m.readHost(ctx, &f); err != nil {
		return f, err
	}
	if err := m.readData(ctx, &f); err != nil {
		return f, err
	}
	if err := m.readLeft(ctx, &f); err != nil {
		return f, err
	}
	return f, m.checkClasses(ctx, &f)
}

// readLeft reads the objects linked to the selection that do not move, and whether the namespace exists.
func (m *Move) readLeft(ctx context.Context, f *planInput) (err error) {
	v := transfer.Survey{Source: m.source, Target: m.target, Kinds: f.kinds, Namespace: m.What.Namespace, At: f.at}
	if f.left, err = v.LeftBehind(ctx, f.graph, f.selection); err != nil || len(f.selection.Levels) > 0 || m.What.Namespace == "" {
		return err
	}
	all, err := m.source.Namespaces(ctx)
	f.noNamespace = err == nil && !all[m.What.Namespace]
	return err
}

// readSource reads the objects to move.
func (m *Move) readSource(ctx context.Context, f *planInput) (err error) {
	if f.sourceProviders, err = m.source.Providers(ctx); err != nil {
		return err
	}
	if f.kinds, err = m.source.Kinds(ctx, m.mapper()); err != nil {
		return err
	}
	objects, err := m.source.Read(ctx, f.kinds, m.What.Namespace, movegraph.InfrastructureNamespaces(f.sourceProviders))
	if err != nil {
		return err
	}
	f.graph = movegraph.Build(objects)
	f.selection = f.graph.Select(m.What)
	f.at, err = m.targetIDs(f.selection.Items())
	return err
}

// readHost reads the host resources of the selection.
func (m *Move) readHost(ctx context.Context, f *planInput) error {
	f.apart = m.HostProblem
	if m.Host == nil || !slices.ContainsFunc(f.selection.Items(), OnHost) {
		return nil
	}
	for _, i := range f.selection.Items() {
		if OnHost(i) && f.at(i.ID) != i.ID {
			f.apart = "they would get other names, by which they would not be found"
			return nil
		}
	}
	read, err := m.Host.Read(ctx, f.selection)
	f.host = &read
	return err
}

// checkClasses adds a problem for each Cluster whose ClusterClass neither moves nor exists at the target.
func (m *Move) checkClasses(ctx context.Context, f *planInput) error {
	for _, i := range f.selection.Find(movegraph.Cluster) {
		class := movegraph.ClassOf(i.Object.Unstructured)
		if class.Name == "" || class.Namespace == i.ID.Namespace || slices.ContainsFunc(f.selection.Items(), func(o movegraph.Item) bool { return o.ID == class }) {
			continue
		}
		found, err := m.target.Find(ctx, []movegraph.ID{class}, func(movegraph.ID) string { return i.GroupVersionKind().Version })
		if err != nil {
			return err
		}
		if len(found) == 0 {
			f.selection.Problems = append(f.selection.Problems, fmt.Sprintf("%s is of %s, which the target does not have: create it there, or move its namespace, first", i.ID, class))
		}
	}
	return nil
}

// targetIDs returns a function that maps IDs to IDs at the target.
func (m *Move) targetIDs(items []movegraph.Item) (func(movegraph.ID) movegraph.ID, error) {
	if len(m.Mutate) == 0 {
		return func(id movegraph.ID) movegraph.ID { return id }, nil
	}
	at := map[movegraph.ID]movegraph.ID{}
	for _, i := range items {
		o := i.Object.DeepCopy()
		if err := m.mutate(o); err != nil {
			return nil, err
		}
		at[i.ID] = movegraph.IDOf(o)
	}
	return func(id movegraph.ID) movegraph.ID { return at[id] }, nil
}

func (m *Move) mutate(o *unstructured.Unstructured) error {
	for _, f := range m.Mutate {
		if err := f(o); err != nil {
			return fmt.Errorf("changing %s: %w", movegraph.IDOf(o), err)
		}
	}
	return nil
}

// Run executes the plan, or continues an interrupted move.
func (m *Move) Run(ctx context.Context) (Result, error) {
	j, done, err := m.resumeFromJournal(ctx)
	if err != nil || done {
		return Result{}, err
	}
	if j == nil {
		if j, err = m.begin(ctx); err != nil {
			return Result{}, err
		}
	} else {
		m.Report(fmt.Sprintf("Continuing the move that was interrupted while %s", j.Phase))
	}
	return m.runPhases(ctx, j)
}

// Rollback rolls back an interrupted move.
func (m *Move) Rollback(ctx context.Context) (Result, error) {
	j, done, err := m.resumeFromJournal(ctx)
	switch {
	case err != nil:
		return Result{}, err
	case done:
		return Result{}, fault.New(fault.Invalid, "MoveEnded", "the move had ended, and its journal is deleted now: to have everything back, move it back")
	case j == nil:
		return Result{}, fault.New(fault.Invalid, "NothingToTakeBack", "no move is under way: there is nothing to take back")
	case j.Phase == deleting && j.WithData:
		return Result{}, fault.New(fault.Invalid, "TooLate", "the target has the data, and that of the source is being deleted: run the command without --rollback to end the move, then move it back")
	case j.Phase == resuming:
		return Result{}, fault.New(fault.Invalid, "TooLate", "everything is at the target, and the source has nothing any more: run the command without --rollback to end the move, then move it back")
	}
	j.Phase = reverting
	if err := m.saveJournal(ctx, j); err != nil {
		return Result{}, err
	}
	return m.runPhases(ctx, j)
}

// resumeFromJournal returns the journal of this move, or nil. done means that the move was complete except for the journal at the
// target, which is deleted now.
func (m *Move) resumeFromJournal(ctx context.Context) (j *journal, done bool, err error) {
	from, to, err := m.identities(ctx)
	if err != nil {
		return nil, false, err
	}
	namespace := journalNamespace(m.What)
	own, _, err := readJournal(ctx, m.source, namespace)
	if err != nil {
		return nil, false, err
	}
	if own != nil {
		if own.From != from || own.To != to || !sameWhat(own.What, m.What) {
			return nil, false, otherMove(m.source, namespace)
		}
		if own.WithData != m.WithData {
			return nil, false, fault.New(fault.Invalid, "OtherFlags", "the move was begun with --with-data=%t: run the command with it", own.WithData)
		}
		return own, false, m.validateJournal(own)
	}
	left, _, err := readJournal(ctx, m.target, namespace)
	if err != nil || left == nil {
		return nil, false, err
	}
	if left.From != from || left.To != to {
		return nil, false, otherMove(m.target, namespace)
	}
	m.Report("The move had ended already")
	return nil, true, deleteJournal(ctx, m.target, left)
}

// validateJournal validates a journal that a tenant can modify: it returns an error if the journal refers to objects outside of
// the namespace.
func (m *Move) validateJournal(j *journal) error {
	for _, e := range j.Plan.Entries {
		outside := m.What.Namespace != "" && !e.Copy && e.ID.Namespace != m.What.Namespace
		if outside || e.To != nil && len(m.Mutate) == 0 {
			return fault.New(fault.Invalid, "UnreadableJournal", "the journal, ConfigMap %s/%s of the source, names %s, which this move has nothing to do with: it was changed by another client; see who may write ConfigMaps there, and delete it to begin the move again",
				journalNamespace(m.What), journalName, e.At())
		}
	}
	for _, p := range j.Plan.Data {
		if !slices.ContainsFunc(j.Plan.Entries, func(e transfer.Entry) bool { return e.ID == p.ID && !e.Copy && e.ID.Kind == "HostedControlPlane" }) {
			return fault.New(fault.Invalid, "UnreadableJournal", "the journal, ConfigMap %s/%s of the source, names %s, which does not move: it was changed by another client; see who may write ConfigMaps there, and delete it to begin the move again",
				journalNamespace(m.What), journalName, p.ID)
		}
	}
	return nil
}

func sameWhat(a, b movegraph.Scope) bool {
	return a.Namespace == b.Namespace && slices.Equal(slices.Sorted(slices.Values(a.Clusters)), slices.Sorted(slices.Values(b.Clusters)))
}

// begin computes the plan and writes the journal to the source. Nothing is written before.
func (m *Move) begin(ctx context.Context) (*journal, error) {
	from, to, err := m.identities(ctx)
	if err != nil {
		return nil, err
	}
	p, err := m.plan(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	j := &journal{ID: string(uuid.NewUUID()), From: from, To: to, What: m.What, Phase: pausing, Plan: p, Paused: p.roots(), WithData: m.WithData}
	return j, writeJournal(ctx, m.source, j)
}

// saveJournal writes the journal to the source, which is authoritative, and to the target.
func (m *Move) saveJournal(ctx context.Context, j *journal) error {
	if err := writeJournal(ctx, m.source, j); err != nil {
		return err
	}
	if err := m.target.EnsureNamespace(ctx, journalNamespace(j.What)); err != nil {
		return err
	}
	return writeJournal(ctx, m.target, j)
}

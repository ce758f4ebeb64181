package move

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/transfer"
	"github.com/slipwayhq/slipway/internal/fault"
)

// identities returns the identities of the source and the target, and rejects a move within one management cluster.
// [Move.Plan] and [Move.Run] call it first.
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

// readInput reads the input of a plan from both management clusters. Move.plan calls it, and Move.create calls it again
// after the source is paused.
func (m *Move) readInput(ctx context.Context) (planInput, error) {
	var f planInput
	var err error
	if f.sourceState, err = m.readSource(ctx); err != nil {
		return f, err
	}
	if f.at, err = m.targetIDs(f.selection.Items()); err != nil {
		return f, err
	}
	if f.targetProviders, err = m.target.Providers(ctx); err != nil {
		return f, err
	}
	if f.namespaces, err = m.target.Namespaces(ctx); err != nil {
		return f, err
	}
	var ids []graph.ID
	versions := map[graph.ID]string{}
	for _, i := range f.selection.Items() {
		if !transfer.KindOf(f.kinds, i.ID).Missing {
			ids = append(ids, f.at(i.ID))
			versions[f.at(i.ID)] = i.GroupVersionKind().Version
		}
	}
	if f.target, err = m.target.Find(ctx, ids, func(id graph.ID) string { return versions[id] }); err != nil {
		return f, err
	}
	if err := m.readHost(ctx, &f); err != nil {
		return f, err
	}
	if err := m.readData(ctx, &f); err != nil {
		return f, err
	}
	if err := m.readTargetHosts(ctx, &f); err != nil {
		return f, err
	}
	if err := m.readLeft(ctx, &f); err != nil {
		return f, err
	}
	return f, m.checkClasses(ctx, &f)
}

// readLeft reads the objects linked to the selection that do not move, and whether the namespace exists.
func (m *Move) readLeft(ctx context.Context, f *planInput) (err error) {
	v := transfer.Survey{Source: m.source, Target: m.target, Kinds: f.kinds, Namespace: m.Scope.Namespace, At: f.at}
	if f.left, err = v.LeftBehind(ctx, f.graph, f.selection); err != nil || len(f.selection.Levels) > 0 || m.Scope.Namespace == "" {
		return err
	}
	all, err := m.source.Namespaces(ctx)
	f.noNamespace = err == nil && !all[m.Scope.Namespace]
	return err
}

// sourceState is the content of the source, read once.
type sourceState struct {
	sourceProviders []graph.Provider
	kinds           []transfer.Kind
	graph           *graph.Graph
	selection       graph.Selection
}

// objects returns the selected objects by ID. Move.forwardTransfer calls it.
func (s sourceState) objects() map[graph.ID]graph.Object {
	out := map[graph.ID]graph.Object{}
	for _, i := range s.selection.Items() {
		out[i.ID] = i.Object
	}
	return out
}

// readSource returns the content of the source. In a move that is neither interrupted nor meets a conflict, it is read
// twice: for the plan, and after everything was paused and released ([Move.paused]). Later deletions compare the
// resourceVersion of each object.
func (m *Move) readSource(ctx context.Context) (sourceState, error) {
	if m.paused != nil {
		return *m.paused, nil
	}
	s, err := m.readKinds(ctx)
	if err != nil {
		return s, err
	}
	return s, m.readObjects(ctx, &s)
}

// readKinds reads the providers and kinds of the source.
func (m *Move) readKinds(ctx context.Context) (s sourceState, err error) {
	if s.sourceProviders, err = m.source.Providers(ctx); err != nil {
		return s, err
	}
	s.kinds, err = m.source.Kinds(ctx, m.mapper())
	return s, err
}

// readObjects reads the objects of all kinds, and selects those to move.
func (m *Move) readObjects(ctx context.Context, s *sourceState) error {
	objects, err := m.source.Read(ctx, s.kinds, m.Scope.Namespace, graph.InfrastructureNamespaces(s.sourceProviders))
	if err != nil {
		return err
	}
	for n := range objects {
		isInScope := m.Scope.Namespace == "" || objects[n].GetNamespace() == m.Scope.Namespace
		objects[n].Saved = m.withFreeHosts && len(m.Scope.Clusters) == 0 && isInScope && graph.IDOf(objects[n].Unstructured).IsSSH(graph.SSHHost)
	}
	if m.target == nil { // files have the ClusterClasses of other namespaces, too
		classes, err := m.source.ReadClasses(ctx, s.kinds, objects)
		if err != nil {
			return err
		}
		objects = append(objects, classes...)
	}
	s.graph = graph.Build(objects)
	s.selection = s.graph.Select(m.Scope)
	s.selection.Problems = slices.Clip(s.selection.Problems) // each user of the state appends its own
	return nil
}

// readHost reads the host resources of the selection.
func (m *Move) readHost(ctx context.Context, f *planInput) error {
	f.hostProblem = m.HostProblem
	if m.Host == nil || !slices.ContainsFunc(f.selection.Items(), OnHost) {
		return nil
	}
	for _, i := range f.selection.Items() {
		if OnHost(i) && f.at(i.ID) != i.ID {
			f.hostProblem = "they would get other names, by which they would not be found"
			return nil
		}
	}
	read, err := m.Host.Read(ctx, f.selection)
	f.host = &read
	return err
}

// checkClasses adds a problem for each Cluster whose ClusterClass neither moves nor exists at the target.
func (m *Move) checkClasses(ctx context.Context, f *planInput) error {
	for _, i := range f.selection.Find(graph.Cluster) {
		class := graph.ClassOf(i.Object.Unstructured)
		if class.Name == "" || class.Namespace == i.ID.Namespace || slices.ContainsFunc(f.selection.Items(), func(o graph.Item) bool { return o.ID == class }) {
			continue
		}
		found, err := m.target.Find(ctx, []graph.ID{class}, func(graph.ID) string { return i.GroupVersionKind().Version })
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
func (m *Move) targetIDs(items []graph.Item) (func(graph.ID) graph.ID, error) {
	if len(m.Mutate) == 0 {
		return func(id graph.ID) graph.ID { return id }, nil
	}
	at := map[graph.ID]graph.ID{}
	for _, i := range items {
		o := i.Object.DeepCopy()
		if err := m.mutate(o); err != nil {
			return nil, err
		}
		at[i.ID] = graph.IDOf(o)
	}
	return func(id graph.ID) graph.ID { return at[id] }, nil
}

func (m *Move) mutate(o *unstructured.Unstructured) error {
	for _, f := range m.Mutate {
		if err := f(o); err != nil {
			return fmt.Errorf("changing %s: %w", graph.IDOf(o), err)
		}
	}
	return nil
}

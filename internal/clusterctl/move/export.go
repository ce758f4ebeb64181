package move

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/transfer"
	"github.com/slipwayhq/slipway/internal/fault"
)

// toFiles is the target in the journal of an export. Journals contain it, so it must not change.
const toFiles = "directory"

// mapper returns the RESTMapper of the target; nil for files. Move.readKinds calls it.
func (m *Move) mapper() meta.RESTMapper {
	if m.target == nil {
		return nil
	}
	return m.target.Client.RESTMapper()
}

// selected reads the input of an export.
func (m *Move) selected(ctx context.Context) (planInput, error) {
	f := planInput{directory: true, at: func(id graph.ID) graph.ID { return id }, namespaces: map[string]bool{}}
	var err error
	if f.sourceState, err = m.readSource(ctx); err != nil {
		return f, err
	}
	return f, m.readLeft(ctx, &f)
}

// PlanExport returns the plan of [ToDirectory], for --dry-run. `slipway move` calls it for an export.
func PlanExport(ctx context.Context, c client.Client, o Options) (Plan, error) {
	m := &Move{Options: o.withDefaults(), source: transfer.New("source", c)}
	f, err := m.selected(ctx)
	if err != nil {
		return Plan{}, err
	}
	p := makePlan(f)
	return p, p.Err()
}

// Snapshot reads the objects of Cluster API without pausing them, for `slipway backup`. They are returned without
// status, owners first. Unlike a move, a backup of a whole namespace also has the SSHHosts in it that nothing uses.
func Snapshot(ctx context.Context, c client.Client, what graph.Scope) ([]*unstructured.Unstructured, error) {
	m := &Move{Options: Options{Scope: what}.withDefaults(), source: transfer.New("source", c), withFreeHosts: true}
	f, err := m.selected(ctx)
	if err != nil {
		return nil, err
	}
	if problems := append(f.selection.Problems, graph.LeftBehind(f.left)...); len(problems) > 0 {
		return nil, fault.New(fault.Invalid, "CannotSave", "nothing was saved, because of what follows:\n  - %s", strings.Join(problems, "\n  - "))
	}
	return portableObjects(f.selection.Items()), nil
}

// portableObjects returns objects in the form for files, with the UIDs required to restore owner references.
func portableObjects(items []graph.Item) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, i := range items {
		o := graph.Strip(i.Object.Unstructured)
		o.SetUID(i.GetUID())
		o.SetOwnerReferences(i.GetOwnerReferences())
		o.SetManagedFields(nil)
		out = append(out, o)
	}
	return out
}

// ToDirectory implements "slipway move --to-directory": it pauses the selected objects, writes them to files, and
// resumes them. After an interruption, the same call completes the export.
func ToDirectory(ctx context.Context, c client.Client, dir string, o Options) (DirectoryResult, error) {
	m := &Move{Options: o.withDefaults(), source: transfer.New("source", c)}
	j, err := m.beginExport(ctx, dir)
	if err != nil {
		return DirectoryResult{}, err
	}
	for _, e := range j.Plan.Entries {
		if isRoot(e) {
			if err := m.source.SetPaused(ctx, e.ID, e.Version, true); err != nil {
				return DirectoryResult{}, withResumeHint(err)
			}
		}
	}
	holders, err := m.awaitRelease(ctx)
	if err != nil {
		return DirectoryResult{}, withResumeHint(err)
	}
	var written int
	if len(holders) == 0 {
		f, err := m.selected(ctx)
		if err != nil {
			return DirectoryResult{}, withResumeHint(err)
		}
		objects := portableObjects(f.selection.Items())
		if err := writeFolder(dir, objects); err != nil {
			return DirectoryResult{}, withResumeHint(err)
		}
		written = len(objects)
	}
	for _, e := range j.Plan.Entries {
		if isRoot(e) {
			if err := m.source.SetPaused(ctx, e.ID, e.Version, false); err != nil {
				return DirectoryResult{}, withResumeHint(err)
			}
		}
	}
	if err := deleteJournal(ctx, m.source, j); err != nil {
		return DirectoryResult{}, withResumeHint(err)
	}
	if len(holders) > 0 {
		return DirectoryResult{}, fault.New(fault.Transient, "MoveBlocked", "these objects are blocked by their providers (annotation %s) and were not released within %s: %s; everything was resumed, nothing was written",
			graph.BlockMove, m.Timeout, strings.Join(holders, ", "))
	}
	return DirectoryResult{Written: written}, nil
}

func withResumeHint(err error) error {
	return fault.WithHint(err, "the objects are paused; run the same command again to complete it and resume them")
}

// beginExport writes the journal of an export to the source, or returns the journal of an interrupted one.
func (m *Move) beginExport(ctx context.Context, dir string) (*journal, error) {
	namespace := journalNamespace(m.Scope)
	j, _, err := readJournal(ctx, m.source, namespace)
	switch {
	case err != nil:
		return nil, err
	case j != nil && (j.To != toFiles || !isSameScope(j.What, m.Scope)):
		return nil, otherMove(m.source, namespace)
	case j != nil:
		if err := m.validateJournal(ctx, j); err != nil {
			return nil, err
		}
		m.Report("Continuing what was interrupted")
		return j, createFolder(dir) // it may be another directory than before
	}
	if err := prepareFolder(dir); err != nil {
		return nil, err
	}
	f, err := m.selected(ctx)
	if err != nil {
		return nil, err
	}
	p := makePlan(f)
	if err := p.Err(); err != nil {
		return nil, err
	}
	from, err := m.source.Identity(ctx)
	if err != nil {
		return nil, err
	}
	p.Entries = slices.DeleteFunc(p.Entries, func(e transfer.Entry) bool { return !isRoot(e) }) // only these have to be resumed
	j = &journal{ID: string(uuid.NewUUID()), From: from, To: toFiles, What: m.Scope, Phase: pausing, Plan: p, Paused: p.roots()}
	return j, writeJournal(ctx, m.source, j)
}

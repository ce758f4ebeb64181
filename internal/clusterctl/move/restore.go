package move

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/transfer"
	"github.com/slipwayhq/slipway/internal/fault"
)

// restoringAnnotation marks Clusters, ClusterClasses and SSHHosts that were created from files and are not resumed yet,
// so that a repeated command can identify the objects it has paused.
const restoringAnnotation = "move.slipway.dev/restoring"

// DirectoryResult is the result of an export to files or a restore from files, also in structured output.
type DirectoryResult struct {
	// Written is the number of objects written to files.
	Written int `json:"written"`
	// Created is the number of objects created from files.
	Created int `json:"created"`
	// Unchanged is the number of objects that already existed, and were left unchanged.
	Unchanged int `json:"kept"`
	// DryRun means that nothing was created.
	DryRun bool `json:"dryRun,omitempty"`
}

// String describes the result in one sentence.
func (s DirectoryResult) String() string {
	switch {
	case s.Written > 0:
		return fmt.Sprintf("Wrote %d objects; nothing is paused any more.", s.Written)
	case s.DryRun:
		return fmt.Sprintf("Would create %d objects, and keep %d that exist.", s.Created, s.Unchanged)
	}
	return fmt.Sprintf("Created %d objects, kept %d that existed.", s.Created, s.Unchanged)
}

// RestoreOptions configure the creation of objects from files. `slipway restore` and `slipway move --from-directory`
// fill them in.
type RestoreOptions struct {
	// Report is called with a progress message for each stage; it may be nil.
	Report func(string)
	// DryRun disables all writes.
	DryRun bool
	// KeepPaused leaves objects paused that are paused in their file.
	KeepPaused bool
	// Visit is called for each object before the first write; kept reports whether the object already exists. It may be
	// nil.
	Visit func(id graph.ID, kept bool)
	// Creating is called concurrently before each creation of an object; it may be nil.
	Creating func()
}

// FromDirectory creates the objects written by [ToDirectory], paused, and resumes them when all exist. Existing objects
// are left unchanged. `slipway move` calls it if its source is a directory.
func FromDirectory(ctx context.Context, c client.Client, dir string, o RestoreOptions) (DirectoryResult, error) {
	objects, err := readFolder(dir)
	if err != nil {
		return DirectoryResult{}, err
	}
	return Restore(ctx, c, objects, o)
}

// Restore creates objects, paused, and resumes them when all exist, for `slipway restore` and
// `slipway move --from-directory`. Existing objects are left unchanged. After an interruption, the same call completes
// the restore.
func Restore(ctx context.Context, c client.Client, objects []*unstructured.Unstructured, o RestoreOptions) (DirectoryResult, error) {
	s := transfer.New("management cluster", c)
	report := Options{Report: o.Report}.withDefaults().Report
	t, namespaces, err := restoration(ctx, s, objects, o.Creating)
	if err != nil {
		return DirectoryResult{}, err
	}
	if err := t.Load(ctx); err != nil {
		return DirectoryResult{}, err
	}
	for _, e := range t.Entries {
		if _, kept := t.Live[e.ID]; o.Visit != nil {
			o.Visit(e.ID, kept)
		}
	}
	result := DirectoryResult{Unchanged: len(t.Live), Created: len(t.Entries) - len(t.Live), DryRun: o.DryRun}
	if o.DryRun {
		return result, nil
	}
	for _, ns := range namespaces {
		if err := s.EnsureNamespace(ctx, ns); err != nil {
			return DirectoryResult{}, withRepeatHint(err)
		}
	}
	report(fmt.Sprintf("Creating %d objects, paused", result.Created))
	if err := t.Run(ctx); err != nil {
		return DirectoryResult{}, withRepeatHint(err)
	}
	report("Resuming what was created")
	for _, group := range graph.InPauseOrder(t.Entries, func(e transfer.Entry) graph.ID { return e.ID }) {
		for _, e := range group {
			stays := o.KeepPaused && isPaused(t.Source[e.ID].Unstructured)
			if err := endRestoring(ctx, s, e, stays); err != nil {
				return DirectoryResult{}, withRepeatHint(err)
			}
		}
	}
	return result, nil
}

func withRepeatHint(err error) error {
	return fault.WithHint(err, "not everything was created, and what was is paused; run the same command again to complete it")
}

func isPaused(o *unstructured.Unstructured) bool {
	return graph.IsClusterPaused(o) || graph.IsClassPaused(o)
}

// restoration validates all objects before the first write, and returns the transfer and the required namespaces.
func restoration(ctx context.Context, s *transfer.Endpoint, objects []*unstructured.Unstructured, creating func()) (*transfer.Transfer, []string, error) {
	kinds, err := s.Kinds(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	var all []graph.Object
	var problems, namespaces []string
	seen := map[graph.ID]bool{}
	for _, o := range objects {
		id := graph.IDOf(o)
		k := transfer.KindOf(kinds, id)
		_, err := s.Client.RESTMapper().RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
		switch {
		case k.Kind == "" || transfer.IsNoMatch(err):
			problems = append(problems, fmt.Sprintf("%s: the management cluster does not have %s of %s, or it is not a kind of Cluster API; install its provider, or remove the file", id, o.GetKind(), o.GetAPIVersion()))
		case err != nil:
			return nil, nil, fmt.Errorf("reading whether %s is served: %w", o.GetKind(), err)
		case seen[id]:
			problems = append(problems, fmt.Sprintf("%s is there twice: remove one", id))
		}
		seen[id] = true
		if id.Namespace != "" && !slices.Contains(namespaces, id.Namespace) {
			namespaces = append(namespaces, id.Namespace)
		}
		all = append(all, graph.Object{Unstructured: o, Marked: true, Saved: id.IsSSH(graph.SSHHost)}) // select all objects
	}
	selection := graph.Build(all).Select(graph.Scope{})
	if problems = append(problems, selection.Problems...); len(problems) > 0 {
		return nil, nil, fault.New(fault.Invalid, "CannotRestore", "nothing was created, because of what follows:\n  - %s", strings.Join(problems, "\n  - "))
	}
	t := &transfer.Transfer{To: s, Source: map[graph.ID]graph.Object{}, Change: func(object *unstructured.Unstructured) error {
		if creating != nil {
			creating()
		}
		return markRestoring(object)
	}}
	t.SourceID = func(e transfer.Entry) graph.ID { return e.ID }
	t.TargetID = t.SourceID
	for level, items := range selection.Levels {
		for _, i := range items {
			t.Source[i.ID] = i.Object
			t.Entries = append(t.Entries, transfer.Entry{ID: i.ID, Version: i.GroupVersionKind().Version, Level: level, Copy: true})
		}
	}
	return t, namespaces, nil
}

func markRestoring(o *unstructured.Unstructured) error {
	if graph.IDOf(o).IsPausable() {
		graph.Pause(o, true)
		graph.Annotate(o, restoringAnnotation, true)
	}
	return nil
}

// endRestoring resumes an object if the restore has created it.
func endRestoring(ctx context.Context, s *transfer.Endpoint, e transfer.Entry, stays bool) error {
	live, err := s.Get(ctx, e.ID, e.Version)
	if err != nil || live == nil {
		return err
	}
	if _, own := live.GetAnnotations()[restoringAnnotation]; !own {
		return nil
	}
	return s.Writer.Patch(ctx, live, func(c client.Object) {
		o := c.(*unstructured.Unstructured)
		graph.Annotate(o, restoringAnnotation, false)
		if !stays {
			graph.Pause(o, false)
		}
	})
}

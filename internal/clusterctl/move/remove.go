package move

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/transfer"
	"github.com/slipwayhq/slipway/internal/fault"
)

// deletion is the deletion of objects in one management cluster: at the source in the phase deleting, at the target in
// the phase reverting.
type deletion struct {
	at *transfer.Endpoint
	// entries are the objects to delete, dependents first; id returns the ID of an entry.
	entries []transfer.Entry
	id      func(transfer.Entry) graph.ID
	// live are the objects that exist, as they were read.
	live map[graph.ID]graph.Object
	// mayDelete reports whether an object that changed since it was read may be deleted as it is now.
	mayDelete func(e transfer.Entry, now *unstructured.Unstructured) (bool, error)
	// withCleanup reports whether the controller of an object cleans up the host, so that its finalizers remain.
	withCleanup func(graph.Object) bool
}

// deleteAtSource deletes the objects at the source that the target has as they are there now. Move.remove calls it in
// the phase deleting.
func (m *Move) deleteAtSource(ctx context.Context, j *journal, t *transfer.Transfer) error {
	moved := slices.DeleteFunc(slices.Clone(j.Plan.Entries), func(e transfer.Entry) bool { return e.Copy })
	slices.Reverse(moved)
	d := deletion{at: m.source, entries: moved, id: t.SourceID, live: map[graph.ID]graph.Object{}, mayDelete: t.IsTransferred}
	for _, e := range moved {
		if o, exists := t.Source[e.ID]; exists {
			d.live[e.ID] = o
		}
	}
	return m.delete(ctx, d)
}

// deleteAtTarget deletes the objects at the target that the move has created, and that the source has again.
func (m *Move) deleteAtTarget(ctx context.Context, j *journal, source map[graph.ID]graph.Object) error {
	created := slices.DeleteFunc(slices.Clone(j.Plan.Entries), func(e transfer.Entry) bool {
		_, safe := source[e.ID]
		return !safe || e.Existed || e.Copy
	})
	slices.Reverse(created)
	live, err := m.target.FindEntries(ctx, created, transfer.Entry.At)
	if err != nil {
		return err
	}
	return m.delete(ctx, deletion{at: m.target, entries: created, id: transfer.Entry.At, live: live,
		mayDelete: func(transfer.Entry, *unstructured.Unstructured) (bool, error) { return true, nil }})
}

// delete deletes objects, and waits until they are gone.
func (m *Move) delete(ctx context.Context, d deletion) error {
	const interval = time.Second
	d.withCleanup = func(o graph.Object) bool { return m.deletesItself(d.at, o) }
	for waited := time.Duration(0); ; waited += interval {
		left, err := d.pass(ctx)
		if err != nil || len(left) == 0 {
			return err
		}
		if waited > m.Timeout {
			return fault.New(fault.Transient, "NotDeleted", "these objects still exist at the %s: %s", d.at.Name, strings.Join(describeFinalizers(left), "; "))
		}
		d.live = left
		if err := m.Sleep(ctx, interval); err != nil {
			return err
		}
	}
}

// pass deletes all objects once, and returns those that still exist.
func (d deletion) pass(ctx context.Context) (map[graph.ID]graph.Object, error) {
	left := map[graph.ID]graph.Object{}
	var mu sync.Mutex
	err := transfer.EachLevel(ctx, d.entries, func(ctx context.Context, e transfer.Entry) error {
		o, exists := d.live[d.id(e)]
		if !exists {
			return nil
		}
		remains, err := d.deleteAsRead(ctx, e, o)
		if err != nil || !remains {
			return err
		}
		now, err := d.at.Get(ctx, d.id(e), e.Version)
		if err != nil || now == nil || now.GetUID() != o.GetUID() {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		left[d.id(e)] = graph.Object{Unstructured: now, Marked: o.Marked, MarkedHierarchy: o.MarkedHierarchy}
		return nil
	})
	return left, err
}

// deleteAsRead deletes an object if it has not changed since it was read, or may be deleted as it is now. remains
// reports that it has finalizers, and exists until its controller has cleaned up.
func (d deletion) deleteAsRead(ctx context.Context, e transfer.Entry, o graph.Object) (remains bool, err error) {
	const tries = 5
	now := o.Unstructured
	for n := 1; ; n++ {
		remains, err = deleteObject(ctx, d.at, now, d.withCleanup(o))
		if fault.KindOf(err) != fault.Conflict || n == tries {
			return remains, err
		}
		next, failed := d.at.Get(ctx, d.id(e), e.Version)
		if failed != nil || next == nil {
			return false, failed
		}
		if next.GetUID() != o.GetUID() {
			return false, err
		}
		may, failed := d.mayDelete(e, next)
		if failed != nil || !may {
			return false, cmp.Or(failed, err)
		}
		now = next
	}
}

// deleteObject deletes an object without cleanup by its controllers: it annotates the object and removes the
// finalizers. This fails if the object has changed since it was read. With cleanup, the finalizers remain, so that the
// controller cleans up the host. remains reports that the object has finalizers.
func deleteObject(ctx context.Context, s *transfer.Endpoint, o *unstructured.Unstructured, cleanup bool) (remains bool, err error) {
	if cleanup {
		if o.GetDeletionTimestamp() != nil {
			return true, nil
		}
		return true, s.Writer.Delete(ctx, o)
	}
	if o.GroupVersionKind().Group == "" && len(o.GetFinalizers()) == 0 {
		return false, s.Writer.Delete(ctx, o)
	}
	return s.Writer.DeleteAfter(ctx, o, func(c client.Object) {
		u := c.(*unstructured.Unstructured)
		graph.Annotate(u, graph.DeleteForMove, true)
		unstructured.RemoveNestedField(u.Object, "metadata", "finalizers")
	})
}

func describeFinalizers(live map[graph.ID]graph.Object) []string {
	var out []string
	for id, o := range live {
		out = append(out, fmt.Sprintf("%s (finalizers %s)", id, strings.Join(o.GetFinalizers(), ", ")))
	}
	slices.Sort(out)
	return out
}

// revert executes the phase reverting: it restores all objects at the source, then deletes the objects that the move
// created at the target. Move.step calls it.
func (m *Move) revert(ctx context.Context, j *journal) error {
	m.Report("Returning everything to the source")
	if m.Host == nil && len(j.Plan.Host) > 0 {
		return withContinueHint(fault.New(fault.Invalid, "NotOnTheHost", "what is on the host of both management clusters cannot be taken back, because %s", m.HostProblem))
	}
	if m.Host != nil {
		if err := m.Host.RollBack(ctx, j.What); err != nil {
			return withContinueHint(err)
		}
	}
	t := m.reverseTransfer(j)
	if err := t.Load(ctx); err != nil {
		return withContinueHint(err)
	}
	err := transfer.EachLevel(ctx, t.Entries, func(ctx context.Context, e transfer.Entry) error { return restoreObject(ctx, t, e) })
	if err != nil {
		return withContinueHint(err)
	}
	source, err := m.source.FindEntries(ctx, j.Plan.Entries, func(e transfer.Entry) graph.ID { return e.ID })
	if err != nil {
		return withContinueHint(err)
	}
	if err := m.deleteAtTarget(ctx, j, source); err != nil {
		return withContinueHint(err)
	}
	return m.deleteCopies(ctx, j)
}

// restoreObject restores one object: it is created if it does not exist; otherwise the deletion mark is removed.
func restoreObject(ctx context.Context, t *transfer.Transfer, e transfer.Entry) error {
	live, there := t.Live[t.TargetID(e)]
	if !there {
		return t.TransferEntry(ctx, e)
	}
	if !graph.IsDeletedForMove(live.Unstructured) {
		return nil
	}
	other, known := t.Source[t.SourceID(e)]
	return t.To.Writer.Patch(ctx, live.Unstructured, func(c client.Object) {
		u := c.(*unstructured.Unstructured)
		graph.Annotate(u, graph.DeleteForMove, false)
		if known && len(u.GetFinalizers()) == 0 {
			u.SetFinalizers(other.GetFinalizers())
		}
	})
}

// deleteCopies deletes copied objects unless they are in use. Outside of the namespace it deletes nothing, because a
// tenant can write the journal.
func (m *Move) deleteCopies(ctx context.Context, j *journal) error {
	var entries []transfer.Entry
	for _, e := range slices.Backward(j.Plan.Entries) {
		if outside := m.Scope.Namespace != "" && e.ID.Namespace != m.Scope.Namespace; e.Copy && !e.Existed && outside {
			m.Report(fmt.Sprintf("%s stays at the target: delete it if it was copied there and nothing uses it", e.At()))
		} else if e.Copy && !e.Existed {
			entries = append(entries, e)
		}
	}
	live, err := m.target.FindEntries(ctx, entries, transfer.Entry.At)
	if err != nil {
		return withContinueHint(err)
	}
	for _, e := range entries {
		o, exists := live[e.At()]
		if !exists {
			continue
		}
		switch err := m.target.Writer.DeleteAnyway(ctx, o.Unstructured); {
		case fault.KindOf(err) == fault.Invalid || isForbidden(err):
			m.Report(fmt.Sprintf("%s stays at the target: %v", e.At(), err))
		case err != nil:
			return withContinueHint(err)
		}
	}
	return nil
}

func isForbidden(err error) bool { return apierrors.IsForbidden(err) }

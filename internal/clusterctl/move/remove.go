package move

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/transfer"
	"github.com/slipwayhq/slipway/internal/fault"
)

// deleteObjects deletes objects in one management cluster, dependents first, and waits until they are gone. which returns the
// ID of an entry there, and whether to delete it.
func (m *Move) deleteObjects(ctx context.Context, s *transfer.Endpoint, j *journal, which func(transfer.Entry) (graph.ID, bool)) error {
	var entries []transfer.Entry
	for _, e := range slices.Backward(j.Plan.Entries) {
		if _, is := which(e); is {
			entries = append(entries, e)
		}
	}
	at := func(e transfer.Entry) graph.ID { id, _ := which(e); return id }
	const interval = time.Second
	for waited := time.Duration(0); ; waited += interval {
		live, err := s.FindEntries(ctx, entries, at)
		if err != nil || len(live) == 0 {
			return err
		}
		if waited > m.Timeout {
			return fault.New(fault.Transient, "NotDeleted", "these objects are not gone from the %s: %s", s.Name, strings.Join(describeFinalizers(live), "; "))
		}
		err = transfer.EachLevel(ctx, entries, func(ctx context.Context, e transfer.Entry) error {
			o, exists := live[at(e)]
			if !exists {
				return nil
			}
			return deleteObject(ctx, s, o.Unstructured, m.deletesItself(s, o))
		})
		if err != nil {
			return err
		}
		if live, err = s.FindEntries(ctx, entries, at); err != nil || len(live) == 0 {
			return err
		}
		if err := m.Sleep(ctx, interval); err != nil {
			return err
		}
	}
}

// deleteObject deletes an object without triggering cleanup by its controllers: it annotates the object and removes the
// finalizers. This fails if the object has changed since it was read. With itself, the finalizers remain, so that the
// controller cleans up the host.
func deleteObject(ctx context.Context, s *transfer.Endpoint, o *unstructured.Unstructured, itself bool) error {
	if itself {
		if o.GetDeletionTimestamp() != nil {
			return nil
		}
		return s.Writer.DeleteAnyway(ctx, o)
	}
	if o.GroupVersionKind().Group != "" || len(o.GetFinalizers()) > 0 {
		err := s.Writer.Patch(ctx, o, func(c client.Object) {
			u := c.(*unstructured.Unstructured)
			graph.Annotate(u, graph.DeleteForMove, true)
			unstructured.RemoveNestedField(u.Object, "metadata", "finalizers")
		})
		if fault.KindOf(err) == fault.Gone {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return s.Writer.DeleteAnyway(ctx, o)
}

func describeFinalizers(live map[graph.ID]graph.Object) []string {
	var out []string
	for id, o := range live {
		out = append(out, fmt.Sprintf("%s (finalizers %s)", id, strings.Join(o.GetFinalizers(), ", ")))
	}
	slices.Sort(out)
	return out
}

// revert restores all objects at the source, then deletes the objects that the move created at the target.
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
	err = m.deleteObjects(ctx, m.target, j, func(e transfer.Entry) (graph.ID, bool) {
		_, safe := source[e.ID]
		return e.At(), safe && !e.Existed && !e.Copy
	})
	if err != nil {
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

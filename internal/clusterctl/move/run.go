package move

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/move/check"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/portable"
	"github.com/slipwayhq/slipway/internal/fault"
)

// repetitions is how often a phase is repeated in which an API server failed, as one does that has much to do.
const repetitions = 5

// carryOut continues from the phase of the journal to the end. Every phase can be repeated.
func (m *Move) carryOut(ctx context.Context, j *journal) (Result, error) {
	for failures := 0; ; {
		before := j.Phase
		result, done, err := m.step(ctx, j)
		switch {
		case err == nil && done:
			return result, nil
		case err == nil:
			failures = 0
			continue
		case failures == repetitions || !isServerFailure(err):
			return Result{}, err
		}
		j.Phase = before
		m.Report(fmt.Sprintf("Retrying, because an API server failed: %s", err))
		if err := m.Sleep(ctx, time.Second<<failures); err != nil {
			return Result{}, err
		}
		failures++
	}
}

// step carries one phase out, and notes the next one; done tells that it was the last.
func (m *Move) step(ctx context.Context, j *journal) (_ Result, done bool, err error) {
	var next phase
	switch j.Phase {
	case pausing:
		next, err = m.pause(ctx, j)
	case creating:
		next, err = m.create(ctx, j)
	case deleting:
		next, err = m.remove(ctx, j)
	case resuming:
		result, err := m.end(ctx, j, m.target, Entry.At)
		return result, true, err
	case reverting:
		if err := m.revert(ctx, j); err != nil {
			return Result{}, false, err
		}
		result, err := m.end(ctx, j, m.source, func(e Entry) graph.ID { return e.ID })
		return result, true, err
	default:
		err = fault.New(fault.Invalid, "UnreadableJournal", "the journal has the phase %q, which this version of slipway does not know: use the version that began the move", j.Phase)
	}
	if err != nil {
		return Result{}, false, err
	}
	j.Phase = next
	return Result{}, false, m.note(ctx, j)
}

// isServerFailure reports whether an API server failed, or refused because it has too much to do: the next time it may not.
func isServerFailure(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && (answer.Status().Code >= http.StatusInternalServerError || answer.Status().Code == http.StatusTooManyRequests)
}

// pause pauses what moves, and waits until providers let it go. When they do not, everything is resumed again.
func (m *Move) pause(ctx context.Context, j *journal) (phase, error) {
	for _, ns := range j.Plan.Namespaces {
		if err := m.target.ensureNamespace(ctx, ns); err != nil {
			return "", err
		}
	}
	if err := m.note(ctx, j); err != nil {
		return "", err
	}
	m.Report(fmt.Sprintf("Pausing %d Clusters and ClusterClasses at the source", len(j.Paused)))
	for _, e := range j.Plan.Entries {
		if isRoot(e) {
			if err := m.source.setPaused(ctx, e.ID, e.Version, true); err != nil {
				return "", err
			}
		}
	}
	holders, err := m.awaitRelease(ctx)
	if err != nil || len(holders) == 0 {
		return creating, err
	}
	j.Phase = reverting
	if err := m.note(ctx, j); err != nil {
		return "", err
	}
	if _, err := m.carryOut(ctx, j); err != nil {
		return "", err
	}
	return "", fault.New(fault.Transient, "MoveBlocked", "these objects are blocked by their providers (annotation %s) and were not released within %s: %s; everything was resumed, nothing was moved",
		check.BlockMove, m.Patience, strings.Join(holders, ", "))
}

// awaitRelease returns who still holds the move when patience ends.
func (m *Move) awaitRelease(ctx context.Context) ([]string, error) {
	const interval = 5 * time.Second
	kinds, err := m.source.kinds(ctx, m.mapper())
	if err != nil {
		return nil, err
	}
	said := ""
	for waited := time.Duration(0); ; waited += interval {
		objects, err := m.source.read(ctx, kinds, m.What.Namespace, nil)
		if err != nil {
			return nil, err
		}
		items := graph.Build(objects).Select(m.What).Items()
		holders := append(check.Blocked(items), check.Unobserved(items, waited)...)
		if len(holders) == 0 || waited >= m.Patience {
			return check.Blocked(items), nil
		}
		if text := strings.Join(holders, ", "); text != said {
			m.Report("Waiting for the providers of " + text + " to let them go")
			said = text
		}
		if err := m.Sleep(ctx, interval); err != nil {
			return nil, err
		}
	}
}

// create brings everything to the target and compares it. The plan is made again: objects may have changed before the pause.
func (m *Move) create(ctx context.Context, j *journal) (phase, error) {
	f, err := m.facts(ctx)
	if err != nil {
		return "", err
	}
	f.begun = true
	fresh := makePlan(f)
	if err := fresh.Err(); err != nil {
		return "", continued(err)
	}
	existed := map[graph.ID]bool{}
	for _, e := range j.Plan.Entries {
		existed[e.ID] = e.Existed
	}
	for n, e := range fresh.Entries {
		if before, known := existed[e.ID]; known {
			fresh.Entries[n].Existed = before
		}
	}
	fresh.Namespaces = nil
	j.Plan, j.Paused = fresh, fresh.roots()
	if err := m.note(ctx, j); err != nil {
		return "", err
	}
	moved, copied := fresh.count()
	m.Report(fmt.Sprintf("Creating %d objects at the target", moved+copied))
	t := m.forth(j)
	if err := t.run(ctx); err != nil {
		return "", continued(err)
	}
	m.Report("Comparing the target with the source")
	return deleting, t.verify(ctx)
}

// continued says what to do after an error in the middle.
func continued(err error) error {
	return fmt.Errorf("the move is not complete, everything is paused; run the same command again to continue, or with --rollback to take it back: %w", err)
}

// remove deletes at the source. What was changed there meanwhile is brought to the target first.
func (m *Move) remove(ctx context.Context, j *journal) (phase, error) {
	const tries = 3
	var err error
	for range tries {
		t := m.forth(j)
		if err = t.run(ctx); err != nil {
			return "", continued(err)
		}
		if err = t.verify(ctx); err != nil {
			return "", err
		}
		if err = m.handOver(ctx, j); err != nil {
			return "", continued(err)
		}
		m.Report("Deleting at the source")
		if err = m.delete(ctx, m.source, j, func(e Entry) (graph.ID, bool) { return e.ID, !e.Copy }); fault.KindOf(err) != fault.Conflict {
			break
		}
	}
	if err != nil {
		return "", continued(err)
	}
	return resuming, nil
}

// handOver hands over what is on the host. Both sides are paused, and the target has all objects. What is handed over is read again:
// the journal says nothing about it that would be believed.
func (m *Move) handOver(ctx context.Context, j *journal) error {
	if m.Host == nil && len(j.Plan.Host) == 0 {
		return nil
	}
	var f facts
	if err := m.readSource(ctx, &f); err != nil {
		return err
	}
	if err := m.readHost(ctx, &f); err != nil {
		return err
	}
	var p Plan
	p.survey(f)
	if err := p.Err(); err != nil {
		return err
	}
	for _, h := range p.holdings {
		m.Report("Handing over what Cluster " + h.Record.Cluster + " has on this host")
		if err := m.Host.Give(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// end resumes what was paused, and deletes the journals.
func (m *Move) end(ctx context.Context, j *journal, s *side, at func(Entry) graph.ID) (Result, error) {
	if s == m.target && m.Host != nil {
		if err := m.Host.Settle(j.What); err != nil {
			return Result{}, continued(err)
		}
	}
	m.Report(fmt.Sprintf("Resuming at the %s", s.name))
	for _, kind := range []string{graph.ClusterClass, graph.Cluster} {
		for _, e := range j.Plan.Entries {
			if !isRoot(e) || !e.ID.IsCore(kind) {
				continue
			}
			if err := s.setPaused(ctx, at(e), e.Version, false); err != nil {
				return Result{}, continued(err)
			}
		}
	}
	for _, s := range []*side{m.source, m.target} {
		if err := s.deleteJournal(ctx, j); err != nil {
			return Result{}, continued(err)
		}
	}
	moved, copied := j.Plan.count()
	if s == m.source {
		return Result{Reverted: true}, nil
	}
	return Result{Moved: moved, Copied: copied}, nil
}

func isRoot(e Entry) bool {
	return !e.Copy && (e.ID.IsCore(graph.Cluster) || e.ID.IsCore(graph.ClusterClass))
}

func (s *side) get(ctx context.Context, id graph.ID, version string) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(strings.TrimPrefix(id.Group+"/"+version, "/"))
	o.SetKind(id.Kind)
	err := s.client.Get(ctx, client.ObjectKey{Namespace: id.Namespace, Name: id.Name}, o)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s of the %s: %w", id, s.name, err)
	}
	return o, nil
}

// setPaused pauses or resumes a Cluster or ClusterClass; the field or annotation is removed, not false. One that is gone is left
// out.
func (s *side) setPaused(ctx context.Context, id graph.ID, version string, paused bool) error {
	live, err := s.get(ctx, id, version)
	if err != nil || live == nil {
		return err
	}
	return s.writer.Patch(ctx, live, func(o client.Object) { portable.Pause(o.(*unstructured.Unstructured), paused) })
}

func (s *side) ensureNamespace(ctx context.Context, name string) error {
	ns := &corev1.Namespace{}
	err := s.client.Get(ctx, client.ObjectKey{Name: name}, ns)
	if !apierrors.IsNotFound(err) {
		return err
	}
	return s.writer.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

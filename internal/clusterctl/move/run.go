package move

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/transfer"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/pause"
)

const (
	// maxPhaseRetries is the maximum number of retries of a phase after failures of an API server, for example under
	// load.
	maxPhaseRetries = 5
	// The backoff of these retries.
	minRetryDelay, maxRetryDelay = time.Second, 16 * time.Second
)

// runPhases executes the phases of the package documentation, from the phase in the journal to the end. [Move.Run] and
// [Move.Rollback] call it, and Move.rollBack during a phase. Every phase must be idempotent, because an interrupted one
// is executed again.
func (m *Move) runPhases(ctx context.Context, j *journal) (Result, error) {
	for failures := 0; ; {
		before := j.Phase
		result, done, err := m.step(ctx, j)
		switch {
		case err == nil && done:
			return result, nil
		case err == nil:
			failures = 0
			continue
		case failures == maxPhaseRetries || !isServerFailure(err):
			return Result{}, err
		}
		failures++
		j.Phase = before
		m.Report(fmt.Sprintf("Retrying, because an API server failed: %s", err))
		if err := m.Sleep(ctx, pause.Backoff(failures, minRetryDelay, maxRetryDelay)); err != nil {
			return Result{}, err
		}
	}
}

// step executes one phase, and writes the next one to the journal; done reports whether it was the last.
func (m *Move) step(ctx context.Context, j *journal) (_ Result, done bool, err error) {
	var next phase
	switch j.Phase {
	case pausing:
		next, err = m.pause(ctx, j)
	case creating:
		next, err = m.create(ctx, j)
	case probing:
		next, err = m.probe(ctx, j)
	case saving:
		next, err = m.save(ctx, j)
	case restoring:
		next, err = m.restoreData(ctx, j)
	case deleting:
		next, err = m.remove(ctx, j)
	case resuming:
		result, err := m.finish(ctx, j, m.target, transfer.Entry.At)
		return result, true, err
	case reverting:
		if err := m.revert(ctx, j); err != nil {
			return Result{}, false, err
		}
		result, err := m.finish(ctx, j, m.source, func(e transfer.Entry) graph.ID { return e.ID })
		return result, true, err
	default:
		err = fault.New(fault.Invalid, "UnreadableJournal", "the journal has the phase %q, which this version of slipway does not know: use the version that began the move", j.Phase)
	}
	if err != nil {
		return Result{}, false, err
	}
	j.Phase = next
	return Result{}, false, m.saveJournal(ctx, j)
}

// isServerFailure reports whether an API server failed or rejected the request because of overload, so that a retry may
// succeed.
func isServerFailure(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && (answer.Status().Code >= http.StatusInternalServerError || answer.Status().Code == http.StatusTooManyRequests)
}

// pause executes the phase pausing: it pauses the objects to move, and waits until their providers release them. If
// they do not, everything is resumed.
func (m *Move) pause(ctx context.Context, j *journal) (phase, error) {
	for _, ns := range j.Plan.Namespaces {
		if err := m.target.EnsureNamespace(ctx, ns); err != nil {
			return "", err
		}
	}
	if err := m.saveJournal(ctx, j); err != nil {
		return "", err
	}
	m.Report(fmt.Sprintf("Pausing %d Clusters, ClusterClasses and SSHHosts at the source", len(j.Paused)))
	roots := slices.DeleteFunc(slices.Clone(j.Plan.Entries), func(e transfer.Entry) bool { return !isRoot(e) })
	err := transfer.Each(ctx, roots, func(ctx context.Context, e transfer.Entry) error {
		return m.source.SetPaused(ctx, e.ID, e.Version, true)
	})
	if err != nil {
		return "", err
	}
	holders, err := m.awaitRelease(ctx)
	if err != nil || len(holders) == 0 {
		return creating, err
	}
	if err := m.rollBack(ctx, j); err != nil {
		return "", err
	}
	return "", fault.New(fault.Transient, "MoveBlocked", "these objects are blocked by their providers (annotation %s) and were not released within %s: %s; everything was resumed, nothing was moved",
		graph.BlockMove, m.Timeout, strings.Join(holders, ", "))
}

// rollBack rolls back a move that cannot be completed.
func (m *Move) rollBack(ctx context.Context, j *journal) error {
	j.Phase = reverting
	if err := m.saveJournal(ctx, j); err != nil {
		return err
	}
	_, err := m.runPhases(ctx, j)
	return err
}

// awaitRelease waits until the providers have released all objects. It returns the blocked objects after the timeout.
// A pause that a controller has not observed yet delays the return, but does not block the move, because the controller
// may not be running. The phase pausing and an export call it. The state that it reads last is stored in m.paused, for
// the phases that follow.
func (m *Move) awaitRelease(ctx context.Context) ([]string, error) {
	const soonest, latest = time.Second / 2, 5 * time.Second
	state, err := m.readKinds(ctx)
	if err != nil {
		return nil, err
	}
	said := ""
	interval := soonest
	for waited := time.Duration(0); ; waited, interval = waited+interval, min(2*interval, latest) {
		if err := m.readObjects(ctx, &state); err != nil {
			return nil, err
		}
		items := state.selection.Items()
		blocked := graph.BlockedObjects(items)
		holders := append(slices.Clip(blocked), graph.UnobservedPauses(items, waited)...)
		if len(holders) == 0 || waited >= m.Timeout {
			m.paused = &state
			return blocked, nil
		}
		if text := strings.Join(holders, ", "); text != said {
			m.Report("Waiting for the providers to release " + text)
			said = text
		}
		if err := m.Sleep(ctx, interval); err != nil {
			return nil, err
		}
	}
}

// create executes the phase creating: it creates all objects at the target. It computes the plan again, because objects
// may have changed before the pause. If the data of hosted control planes is transferred, it also compares both
// management clusters.
func (m *Move) create(ctx context.Context, j *journal) (phase, error) {
	f, err := m.readInput(ctx)
	if err != nil {
		return "", err
	}
	f.resumed = true
	fresh := makePlan(f)
	if err := fresh.Err(); err != nil {
		return "", withContinueHint(err)
	}
	// A repeated phase finds objects at the target that the move has created. A rollback must be able to delete them.
	existed := map[graph.ID]bool{}
	for _, e := range j.Plan.Entries {
		existed[e.ID] = e.Existed
	}
	for n, e := range fresh.Entries {
		if before, known := existed[e.ID]; known {
			fresh.Entries[n].Existed = before
		}
	}
	fresh.Namespaces = nil // the phase pausing has created the namespaces of the first plan
	j.Plan, j.Paused = fresh, fresh.roots()
	if err := m.saveJournal(ctx, j); err != nil {
		return "", err
	}
	moved, copied := fresh.count()
	m.Report(fmt.Sprintf("Creating %d objects at the target", moved+copied))
	t := m.forwardTransfer(j)
	if err := t.Run(ctx); err != nil {
		return "", withContinueHint(err)
	}
	if !j.WithData {
		return deleting, nil // this phase compares first
	}
	m.Report("Comparing the target with the source")
	if err := t.Verify(ctx); err != nil {
		return "", withContinueHint(err)
	}
	return probing, nil
}

// withContinueHint adds the possible next steps to an error during the move.
func withContinueHint(err error) error {
	return fault.WithHint(err, "the move is not complete, everything is paused; run the same command again to continue, or with --rollback to take it back")
}

// withFinishHint adds the next step to an error after the objects have been moved.
func withFinishHint(err error) error {
	return fault.WithHint(err, "everything is at the target, and resumed there; run the same command again to end the move")
}

// remove executes the phase deleting: it deletes the objects at the source, after transferring changes that were made
// there in the meantime.
func (m *Move) remove(ctx context.Context, j *journal) (phase, error) {
	const tries = 3
	var err error
	for n := range tries {
		if n > 0 || j.WithData {
			m.paused = nil // the source has changed, or may have changed while the data was transferred
		}
		t := m.forwardTransfer(j)
		if err = t.Run(ctx); err != nil {
			return "", withContinueHint(err)
		}
		if n == 0 {
			m.Report("Comparing the target with the source")
		} else {
			m.Report("The source has changed since: comparing the target with it again")
		}
		if err = t.Verify(ctx); err != nil {
			return "", withContinueHint(err)
		}
		if err = m.transferHostOwnership(ctx, j); err != nil {
			return "", withContinueHint(err)
		}
		m.Report("Deleting at the source")
		if err = m.deleteAtSource(ctx, j, t); fault.KindOf(err) != fault.Conflict {
			break
		}
	}
	if err == nil && j.WithData {
		err = m.replaceMachines(ctx, j)
	}
	if err != nil {
		return "", withContinueHint(err)
	}
	return resuming, nil
}

// transferHostOwnership transfers the ownership of resources on the host. Both management clusters are paused, and the
// target has all objects. The journal is not a trusted source for the resources.
func (m *Move) transferHostOwnership(ctx context.Context, j *journal) error {
	if m.Host == nil && len(j.Plan.Host) == 0 {
		return nil
	}
	var f planInput
	var err error
	if f.sourceState, err = m.readSource(ctx); err != nil {
		return err
	}
	if f.at, err = m.targetIDs(f.selection.Items()); err != nil {
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
	for _, h := range p.hostTransfers {
		m.Report("Handing over what Cluster " + h.Record.Cluster + " has on this host")
		if err := m.Host.Transfer(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// finish resumes the paused objects, and deletes the journals: it is the phase resuming, and the end of the phase
// reverting. The journals are deleted last, and the journal of the source first, because a journal that only the target
// has means that the move has ended (see resumeFromJournal).
func (m *Move) finish(ctx context.Context, j *journal, s *transfer.Endpoint, at func(transfer.Entry) graph.ID) (Result, error) {
	if s == m.target && m.Host != nil {
		if err := m.Host.Commit(j.What); err != nil {
			return Result{}, withContinueHint(err)
		}
	}
	if err := m.transfer(j).Release(ctx, s, j.Plan.Data); err != nil {
		return Result{}, withContinueHint(err)
	}
	m.Report(fmt.Sprintf("Resuming at the %s", s.Name))
	for _, paused := range inPauseOrder(j.Plan.Entries) {
		err := transfer.Each(ctx, paused, func(ctx context.Context, e transfer.Entry) error { return s.SetPaused(ctx, at(e), e.Version, false) })
		if err != nil {
			return Result{}, withContinueHint(err)
		}
	}
	if s == m.target {
		if err := m.awaitAPIs(ctx, j); err != nil {
			return Result{}, withFinishHint(err)
		}
	}
	for _, s := range []*transfer.Endpoint{m.source, m.target} {
		if err := deleteJournal(ctx, s, j); err != nil {
			return Result{}, withContinueHint(err)
		}
	}
	moved, copied := j.Plan.count()
	if s == m.source {
		return Result{Reverted: true}, nil
	}
	return Result{Moved: moved, Copied: copied}, nil
}

// isRoot reports whether the move pauses and resumes an object itself: a Cluster, ClusterClass or SSHHost that moves.
func isRoot(e transfer.Entry) bool { return !e.Copy && e.ID.IsPausable() }

package move

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/transfer"
	"github.com/slipwayhq/slipway/internal/fault"
)

// resumeFromJournal returns the journal of this move, or nil if no move is under way. The journal is a ConfigMap with
// the plan and the phase of a move. [Move.Run] and [Move.Rollback] call it first. done means that the move was complete
// except for the journal at the target, which is deleted now.
func (m *Move) resumeFromJournal(ctx context.Context) (j *journal, done bool, err error) {
	from, to, err := m.identities(ctx)
	if err != nil {
		return nil, false, err
	}
	namespace := journalNamespace(m.Scope)
	own, _, err := readJournal(ctx, m.source, namespace)
	if err != nil {
		return nil, false, err
	}
	if own != nil {
		if own.From != from || own.To != to || !isSameScope(own.What, m.Scope) {
			return nil, false, otherMove(m.source, namespace)
		}
		if own.WithData != m.WithData {
			return nil, false, fault.New(fault.Invalid, "OtherFlags", "the move was begun with --with-data=%t: run the command with it", own.WithData)
		}
		return own, false, m.validateJournal(ctx, own)
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

// validateJournal validates a journal that a tenant can modify: it returns an error if the journal refers to objects
// outside of the namespace, other than the SSHHosts of its machines. A move and an export call it before they continue.
func (m *Move) validateJournal(ctx context.Context, j *journal) error {
	for _, e := range j.Plan.Entries {
		outside := m.Scope.Namespace != "" && !e.Copy && e.ID.Namespace != m.Scope.Namespace
		if outside {
			isOfHosts, err := m.isOfHosts(ctx, j, e)
			if err != nil {
				return err
			}
			outside = !isOfHosts
		}
		if outside || e.To != nil && len(m.Mutate) == 0 {
			return fault.New(fault.Invalid, "UnreadableJournal", "the journal, ConfigMap %s/%s of the source, names %s, which this move has nothing to do with: it was changed by another client; see who may write ConfigMaps there, and delete it to begin the move again",
				journalNamespace(m.Scope), journalName, e.At())
		}
	}
	for _, p := range j.Plan.Data {
		if !slices.ContainsFunc(j.Plan.Entries, func(e transfer.Entry) bool { return e.ID == p.ID && !e.Copy && e.ID.Kind == "HostedControlPlane" }) {
			return fault.New(fault.Invalid, "UnreadableJournal", "the journal, ConfigMap %s/%s of the source, names %s, which does not move: it was changed by another client; see who may write ConfigMaps there, and delete it to begin the move again",
				journalNamespace(m.Scope), journalName, p.ID)
		}
	}
	return nil
}

func isSameScope(a, b graph.Scope) bool {
	return a.Namespace == b.Namespace && slices.Equal(slices.Sorted(slices.Values(a.Clusters)), slices.Sorted(slices.Values(b.Clusters)))
}

// begin computes the plan of a new move and writes the journal to the source. Nothing is written before. [Move.Run]
// calls it if no journal exists.
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
	j := &journal{ID: string(uuid.NewUUID()), From: from, To: to, What: m.Scope, Phase: pausing, Plan: p, Paused: p.roots(), WithData: m.WithData}
	return j, writeJournal(ctx, m.source, j)
}

// saveJournal writes the journal to the source, which is authoritative, and to the target. run.go and [Move.Rollback]
// call it at each change of the phase or the plan.
func (m *Move) saveJournal(ctx context.Context, j *journal) error {
	if err := writeJournal(ctx, m.source, j); err != nil {
		return err
	}
	if err := m.target.EnsureNamespace(ctx, journalNamespace(j.What)); err != nil {
		return err
	}
	return writeJournal(ctx, m.target, j)
}

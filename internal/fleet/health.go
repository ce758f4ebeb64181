package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/redact"
	"github.com/slipwayhq/slipway/internal/rootcause"
)

// Health summarizes the state of a cluster or Machine. Commands and the page filter rows by it.
type Health string

// The values of Health.
const (
	Problem  Health = "Problem"
	changing Health = "Changing"
	Paused   Health = "Paused"
	healthy  Health = "Healthy"
)

// AllHealth returns the values of Health in the order of lists that are sorted by trouble. The page lists them in its
// filter.
func AllHealth() []Health { return []Health{Problem, changing, Paused, healthy} }

// maxReason is the maximum length of the reason of a row, in bytes.
const maxReason = 160

// healthFacts are the facts about an object that determine its health. newCluster and [NewMachine] fill them in.
type healthFacts struct {
	paused, deleting bool
	// progressing is true while a creation, rollout, upgrade or scaling is not complete, or an object of the chain is being
	// created or deleted.
	progressing bool
	// troubled is true if there is a root cause chain, needsUser if it ends with an action of a user, and stalled if its
	// cause exists for a long time.
	troubled, needsUser, stalled bool
}

// healthOf applies the rules in this order; the first that matches decides.
//
//	paused, deleting             Problem   the deletion cannot proceed
//	paused                       Paused
//	needs a user                 Problem
//	troubled, nothing changes    Problem
//	troubled, stalled            Problem   a rollout whose cause does not go away
//	deleting or progressing      Changing
//	otherwise                    Healthy
func healthOf(f healthFacts) Health {
	switch {
	case f.paused && f.deleting:
		return Problem
	case f.paused:
		return Paused
	case f.needsUser, f.troubled && (f.stalled || !f.progressing && !f.deleting):
		return Problem
	case f.deleting || f.progressing:
		return changing
	}
	return healthy
}

// Cause is the root cause of a row: where the chain ends, and what ends it. Commands and the page print it, and its
// JSON form is an interface for scripts.
type Cause struct {
	// Object is the object that caused the state, as "Kind name".
	Object string `json:"object,omitempty"`
	// Reason is one short line.
	Reason string `json:"reason,omitempty"`
	// Since is the time when the cause began; nil if it is unknown.
	Since *metav1.Time `json:"since,omitempty"`
	// Remedy is the action that ends it, and Command its command.
	Remedy  string `json:"remedy,omitempty"`
	Command string `json:"command,omitempty"`
	// NeedsUser is true if a user has to act.
	NeedsUser bool `json:"needsUser"`

	chain rootcause.Chain
}

// Chain returns the links from the object of the row to the cause; empty if there is no problem.
func (c Cause) Chain() rootcause.Chain { return c.chain }

// WholeReason returns the reason with all lines of the message, in one line. Wide lists print it.
func (c Cause) WholeReason() string {
	if len(c.chain.Links) == 0 {
		return c.Reason
	}
	root := c.chain.Root()
	return nameIn(c.chain.Links[0].Object, root.Object, cmp.Or(rootcause.OneLine(root.Message), root.Reason, root.Type))
}

// WithFlags adds the flags that select the management cluster to the command of the remedy. Commands and the page call
// it before they show the row.
func (c *Cause) WithFlags(flags string) { c.Command = rootcause.WithFlags(c.Command, flags) }

// explain returns the cause of the state of an object, and the facts about it.
func explain(g rootcause.Graph, of rootcause.Ref, now time.Time) (Cause, healthFacts) {
	chain, found := rootcause.Explain(g, of, now)
	if !found || len(chain.Links) == 0 {
		return Cause{}, healthFacts{}
	}
	root := chain.Root()
	c := Cause{
		Object: root.Object.String(), Reason: shortReason(of, root),
		Remedy: chain.Remedy.Text, Command: chain.Remedy.Command, NeedsUser: chain.NeedsUser(), chain: chain,
	}
	if !root.Since.IsZero() {
		c.Since = &metav1.Time{Time: root.Since}
	}
	facts := healthFacts{troubled: !chain.IsWarning(), needsUser: c.NeedsUser, stalled: isStalled(root.Since, now), progressing: isTransient(g, chain, now)}
	if facts.stalled && chain.IsProgress() && !facts.needsUser { // other automatic remedies describe what ends the problem
		c.Remedy, c.Command = "It takes longer than usual: the plans of its controllers show what they wait for", explainCommand(of)
	}
	return c, facts
}

// isTransient reports whether an object of a chain is being created or deleted, which causes its owners to report that they
// are not ready.
func isTransient(g rootcause.Graph, chain rootcause.Chain, now time.Time) bool {
	return chain.IsProgress() || slices.ContainsFunc(chain.Links, func(l rootcause.Link) bool {
		u, found := g.Get(l.Object)
		if !found || u.GetDeletionTimestamp() != nil {
			return found
		}
		if l.Object != machineRef(l.Object.Namespace, l.Object.Name) {
			return false
		}
		m, ok := rootcause.Decode[clusterv1.Machine](u)
		return ok && (isStarting(m) || isNodeStarting(m, now) && now.Sub(m.CreationTimestamp.Time) < rootcause.OverdueAfter)
	})
}

// explainCommand returns the command that prints the root cause and the plans of an object.
func explainCommand(of rootcause.Ref) string {
	return fmt.Sprintf("slipway explain %s/%s -n %s", strings.ToLower(of.Kind), of.Name, of.Namespace)
}

// isStalled reports whether a cause exists for longer than a normal step of a rollout takes.
func isStalled(since, now time.Time) bool {
	return !since.IsZero() && now.Sub(since) >= rootcause.OverdueAfter
}

// shortReason returns the cause in one line. It names the object unless it is the object of the row.
func shortReason(of rootcause.Ref, root rootcause.Link) string {
	return redact.Clip(nameIn(of, root.Object, cmp.Or(firstLine(rootcause.CauseLine(root.Message)), root.Reason, root.Type)), maxReason)
}

// nameIn adds the name of an object to its reason, unless the row is about this object.
func nameIn(of, object rootcause.Ref, reason string) string {
	if object == of {
		return reason
	}
	return object.String() + ": " + reason
}

// firstLine returns the first line of a message without the bullet of a list.
func firstLine(message string) string {
	line, _, more := strings.Cut(strings.TrimSpace(message), "\n")
	line = strings.TrimSpace(strings.TrimPrefix(line, "* "))
	if more && strings.HasSuffix(line, ":") {
		_, rest, _ := strings.Cut(strings.TrimSpace(message), "\n")
		return line + " " + firstLine(rest)
	}
	return line
}

func isTrue(conditions []metav1.Condition, conditionType string) bool {
	return condition.Set(conditions).IsTrue(conditionType)
}

func anyTrue(conditions []metav1.Condition, types ...string) bool {
	return slices.ContainsFunc(types, func(t string) bool { return isTrue(conditions, t) })
}

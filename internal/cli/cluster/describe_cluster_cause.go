package cluster

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/fleet"
	"github.com/slipwayhq/slipway/internal/rootcause"
)

// causeReader computes the root cause of the problem of a cluster from conditions, owners and references; "slipway
// explain" uses the plans of the manager as well. "describe cluster" prints the cause above the tree; --watch reads it
// repeatedly.
type causeReader struct {
	env        term.Env
	connection *management.Connection
	key        client.ObjectKey
	// kinds are discovered once.
	kinds *management.Kinds
}

// clusterCause is the root cause of the problem of a cluster. causeReader.read returns it. The command and [treeWatch]
// print its text above the tree, and the remarks.
type clusterCause struct {
	// chain is nil if there is no problem, or it cannot be computed.
	chain *rootcause.Chain
	// command prints the remedy.
	command string
	// remarks describe what was not considered.
	remarks []string
}

// read computes the cause. If that fails, the reason is a remark, because the tree is useful without the cause.
func (r *causeReader) read(ctx context.Context) (out clusterCause) {
	unknown := func(err error) {
		out.remarks = append(out.remarks, "The root cause of a problem cannot be computed: "+fault.UserMessage(err))
	}
	if r.kinds == nil {
		kinds, err := management.NewKinds(r.connection.Config)
		if err != nil {
			unknown(err)
			return out
		}
		r.kinds = &kinds
	}
	g := rootcause.NewReader(ctx, rootcause.ReaderOptions{Client: r.connection.Client, Mapper: r.kinds.Mapper(), Namespace: r.key.Namespace})
	chain, found := rootcause.Explain(g, fleet.Cluster{Namespace: r.key.Namespace, Name: r.key.Name}.Ref(), r.env.Now())
	if g.Err() != nil {
		unknown(g.Err())
		return out
	}
	if kinds := g.Unreadable(); len(kinds) > 0 {
		out.remarks = append(out.remarks, "Causes may be missing, because these kinds cannot be read: "+strings.Join(kinds, ", "))
	}
	if limits := g.Limits(); len(limits) > 0 {
		out.remarks = append(out.remarks, "The root cause may be incomplete. "+strings.Join(limits, ". ")+".")
	}
	if found {
		out.chain = &chain
		out.command = fmt.Sprintf("slipway explain cluster/%s -n %s%s", r.key.Name, r.key.Namespace, r.connection.RepeatFlags)
	}
	return out
}

// text returns the line with the cause and an empty line, or nothing if there is no problem. A zero time omits how long
// the problem has lasted.
func (c clusterCause) text(now time.Time) string {
	if c.chain == nil {
		return ""
	}
	at := *c.chain
	at.Time = now
	text := rootcause.Summary(at)
	if at.NeedsUser() {
		text += fmt.Sprintf("; `%s` has the remedy", c.command)
	}
	return text + "\n\n"
}

// printRemarks prints what was not considered.
func (c clusterCause) printRemarks(w io.Writer) error {
	for _, line := range c.remarks {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

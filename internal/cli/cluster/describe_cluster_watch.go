package cluster

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/internal/operate/progress"
	"github.com/slipwayhq/slipway/internal/redact"
)

// clearScreen moves the cursor to the upper left corner of a terminal and clears the screen. The lists with --watch use
// it, too (get_lists_watch.go).
const clearScreen = "\x1b[H\x1b[2J"

const (
	// watchMaxReadFailures is how many consecutive reads may fail because the management cluster is unreachable, which may
	// be restarting.
	watchMaxReadFailures = 15
	// watchCause is the interval in which the root cause is computed again although the tree has not changed.
	watchCause = 10 * time.Second
)

// treeWatch is the state of "describe cluster --watch". watch creates it.
type treeWatch struct {
	env    term.Env
	causes causeReader
	// cause is the last cause, computed at a time for a tree.
	cause   clusterCause
	causeAt time.Time
	tree    string
	// shown is the last output without ages.
	shown string
}

// watch implements "describe cluster --watch": it shows the root cause and the tree after every change except changes
// of age. It returns nil when the cluster is gone after it was shown. asked is true if --color was set.
// DescribeClusterCommand calls it.
func (f *describeClusterFlags) watch(ctx context.Context, e term.Env, c *management.Connection, key client.ObjectKey, asked bool) error {
	changes := progress.NewAPI(ctx, c.Client, key)
	w, failures := treeWatch{env: e, causes: causeReader{env: e, connection: c, key: key}}, 0
	for {
		root, _, err := f.read(ctx, c.Client, key)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case fault.KindOf(err) == fault.Gone && w.shown != "":
			_, err := fmt.Fprintf(e.Out, "Cluster %s is gone.\n", key)
			return err
		case fault.KindOf(err) == fault.Unreachable && w.shown != "" && failures < watchMaxReadFailures:
			failures++
		case err != nil:
			return err
		default:
			failures = 0
			if err := w.show(ctx, root, f.style(e, asked)); err != nil {
				return err
			}
		}
		if err := changes.Wait(ctx); err != nil {
			return err
		}
	}
}

// show prints the root cause and the tree unless both are unchanged. On a terminal it replaces the previous output,
// updates the ages and adds the remarks, which are printed to standard error elsewhere.
func (w *treeWatch) show(ctx context.Context, root *describe.Object, style describe.Style) error {
	ageless := style
	ageless.Now = time.Time{}
	tree := describe.Render(root, ageless)
	screen := term.DetectScreen(w.env, w.env.Out)
	if now := w.env.Now(); tree != w.tree || now.Sub(w.causeAt) >= watchCause {
		before := w.cause.remarks
		w.cause, w.causeAt, w.tree = w.causes.read(ctx), now, tree
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !screen.Live && !slices.Equal(before, w.cause.remarks) {
			if err := w.cause.printRemarks(w.env.Err); err != nil {
				return err
			}
		}
	}
	state := w.cause.text(time.Time{}) + tree
	text := w.cause.text(w.env.Now()) + describe.Render(root, style)
	switch {
	case screen.Live:
		text = w.drawing(text, screen)
	case state == w.shown:
		return nil
	case w.shown != "":
		text = "\n" + text
	}
	w.shown = state
	_, err := io.WriteString(term.Unescaped(w.env.Out), text)
	return err
}

// drawing returns the text that replaces the contents of a terminal. The remarks are part of it, because standard error
// would be cleared as well. It is not longer than the terminal, because a terminal that scrolls retains the previous tree
// above the new one.
func (w *treeWatch) drawing(text string, screen term.Screen) string {
	footer := ""
	if len(w.cause.remarks) > 0 {
		footer = "\n" + redact.Escape(strings.Join(w.cause.remarks, "\n")) + "\n"
	}
	const reserved = 3 // for the remark below, which may be wrapped, and the line of the cursor
	fitting, others := screen.Fit(text, screen.Height-strings.Count(footer, "\n")-reserved)
	if others > 0 {
		fitting += fmt.Sprintf("%d more lines do not fit on the terminal. Without --watch, all of them are printed.\n", others)
	}
	return clearScreen + fitting + footer
}

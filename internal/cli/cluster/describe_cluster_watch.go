package cluster

import (
	"context"
	"fmt"
	"io"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/internal/operate/progress"
)

// clearScreen moves the cursor to the upper left corner of a terminal and clears the screen.
const clearScreen = "\x1b[H\x1b[2J"

// watchMaxReadFailures is how many consecutive reads may fail because the management cluster is unreachable, which may
// be restarting.
const watchMaxReadFailures = 15

// watch implements "describe cluster --watch": it shows the tree after every change except changes of age, and returns
// nil when the cluster is gone after it was shown. asked is true if --color was set.
func (f *describeClusterFlags) watch(ctx context.Context, e term.Env, c client.WithWatch, key client.ObjectKey, asked bool) error {
	changes := progress.NewAPI(ctx, c, key)
	shown, failures := "", 0
	for {
		root, _, err := f.read(ctx, c, key)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case fault.KindOf(err) == fault.Gone && shown != "":
			_, err := fmt.Fprintf(e.Out, "Cluster %s is gone.\n", key)
			return err
		case fault.KindOf(err) == fault.Unreachable && shown != "" && failures < watchMaxReadFailures:
			failures++
		case err != nil:
			return err
		default:
			failures = 0
			if shown, err = showTree(e, root, f.style(e, asked), shown); err != nil {
				return err
			}
		}
		if err := changes.Wait(ctx); err != nil {
			return err
		}
	}
}

// showTree prints the tree unless it is unchanged, and returns it. On a terminal it replaces the previous tree and
// updates the ages.
func showTree(e term.Env, root *describe.Object, style describe.Style, shown string) (string, error) {
	ageless := style
	ageless.Now = time.Time{}
	state := describe.Render(root, ageless)
	text := describe.Render(root, style)
	switch {
	case term.DetectScreen(e, e.Out).Live:
		text = clearScreen + text
	case state == shown:
		return shown, nil
	case shown != "":
		text = "\n" + text
	}
	_, err := io.WriteString(term.Unescaped(e.Out), text)
	return state, err
}

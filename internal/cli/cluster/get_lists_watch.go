package cluster

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/pause"
	"github.com/slipwayhq/slipway/internal/redact"
)

// follow prints the rows again after changes: the whole table on a terminal, elsewhere the changed rows. [lists.addTo]
// calls it with --watch; the other methods of this file are its parts.
func (r listRun[R]) follow(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	copied, err := r.newCopy(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return err
	}
	if err := noNamespace(ctx, r.connection, r.namespace, r.kind); err != nil {
		return err
	}
	run, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); copied.Run(run) }()
	defer func() { cancel(); <-ended }()
	if err := r.awaitSync(ctx, copied); err != nil {
		return err
	}
	for screen := (listScreen{shown: map[string]string{}, first: true}); ; screen.first = false {
		all := copied.rows(r.env.Now())
		if err := r.update(r.choose(all), r.statusOf(copied, all, true), &screen); err != nil {
			return err
		}
		if err := pause.Sleep(ctx, watchSettle); err != nil {
			return err
		}
		if err := pause.Wait(ctx, watchAges, changed); err != nil {
			return err
		}
	}
}

// awaitSync waits until all kinds have been read. It is an error if the kind of the rows has not.
func (r listRun[R]) awaitSync(ctx context.Context, copied listCopy[R]) error {
	for limit := r.env.Now().Add(watchSync); ; {
		status, rows, err := copied.Status(), copied.CopyOf(r.of), copied.ErrorOf(r.of)
		switch {
		case status.Err != nil:
			return status.Err
		case rows.Listed && (status.Synced || r.env.Now().After(limit)):
			return nil
		case apierrors.IsForbidden(err):
			return r.listError(copied, err)
		case err != nil && r.env.Now().After(limit):
			return err
		case r.env.Now().After(limit):
			return fault.New(fault.Unreachable, "NotListed", "the %s were not listed within %s: the API server is slow; try again", r.kind, watchSync)
		}
		if err := pause.Sleep(ctx, watchSettle/5); err != nil {
			return err
		}
	}
}

// listScreen is what was shown of a list: the lines with the names of their rows, and the status. first is set until
// the first rows are shown.
type listScreen struct {
	shown  map[string]string
	status listStatus
	first  bool
}

// update shows the rows and the status. On a terminal, both replace what was shown before.
func (r listRun[R]) update(rows []R, status listStatus, screen *listScreen) error {
	terminal := term.DetectScreen(r.env, r.env.Out)
	if !terminal.Live {
		r.note(status, &screen.status)
		return r.show(rows, screen.shown, screen.first)
	}
	text, err := r.drawing(rows, status, terminal)
	if err != nil {
		return err
	}
	_, err = io.WriteString(term.Unescaped(r.env.Out), text)
	return err
}

// drawing returns the text that replaces the contents of a terminal. It is not longer than the terminal, because a
// terminal that scrolls retains the previous rows above the new ones.
func (r listRun[R]) drawing(rows []R, status listStatus, terminal term.Screen) (string, error) {
	var table bytes.Buffer
	if err := r.printScreen(&table, rows); err != nil {
		return "", err
	}
	footer := redact.Escape(r.lines(status))
	if footer != "" {
		footer = "\n" + footer
	}
	const reserved = 4 // for the remark below, which may be wrapped, and the line of the cursor
	fitting, others := terminal.Fit(table.String(), terminal.Height-strings.Count(footer, "\n")-reserved)
	if others > 0 {
		fitting += fmt.Sprintf("\n%d of %d %s fit on the terminal. List fewer with --problems, -l or -n, or the worst first with --sort-by trouble.\n", max(0, len(rows)-others), len(rows), r.kind)
	}
	return clearScreen + fitting + footer, nil
}

// show prints the lines that differ from the lines shown before, and the names of rows that are gone. Ages are not
// compared. The keys of shown are the lines, and the values the names.
func (r listRun[R]) show(rows []R, shown map[string]string, first bool) error {
	next := map[string]string{}
	names := map[string]bool{}
	var changed []R
	for _, row := range rows {
		a, c := r.attributes(row), r.cells(row, cellTimes{})
		key := strings.Join(slices.Concat([]string{a.namespace, c.reason, c.remedy}, c.cells, c.wide), "\x00")
		next[key], names[a.key()] = a.key(), true
		if _, isShown := shown[key]; !isShown {
			changed = append(changed, row)
		}
	}
	before := slices.Collect(maps.Values(shown))
	clear(shown)
	maps.Copy(shown, next)
	if err := r.printGone(before, names); err != nil || len(changed) == 0 && !first {
		return err
	}
	return r.table(r.env.Out, changed, first)
}

// printGone prints the names of rows that are not listed any more.
func (r listRun[R]) printGone(before []string, names map[string]bool) error {
	slices.Sort(before)
	for _, name := range slices.Compact(before) {
		if names[name] {
			continue
		}
		if _, err := fmt.Fprintf(r.env.Out, "%s is not listed any more.\n", redact.Escape(name)); err != nil {
			return err
		}
	}
	return nil
}

// printScreen prints the rows on a cleared terminal, or that there are none.
func (r listRun[R]) printScreen(w io.Writer, rows []R) error {
	if len(rows) == 0 {
		return r.printEmpty(w)
	}
	return r.print(w, rows)
}

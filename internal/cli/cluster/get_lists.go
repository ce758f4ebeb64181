package cluster

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/fleet"
	"github.com/slipwayhq/slipway/internal/fleet/mirror"
	"github.com/slipwayhq/slipway/internal/redact"
)

const (
	// watchSettle is the minimum time between two outputs of --watch.
	watchSettle = 500 * time.Millisecond
	// watchAges is the interval in which a terminal shows new ages.
	watchAges = 10 * time.Second
	// watchSync is the time after which --watch shows rows although a kind has not been read.
	watchSync = 30 * time.Second
)

// lists implements a list over all clusters with rows of one type. "get clusters", "get machines" and "get nodes" have
// one each. Each command fills it and calls addTo.
type lists[R any] struct {
	// kind is the plural for messages.
	kind string
	// of is the kind whose objects the rows are about. reads are the kinds that the rows need; empty: all.
	of    schema.GroupKind
	reads []schema.GroupKind
	// rows returns the function that computes the rows of a Store, the copy of the objects (package mirror). It is called
	// again with the clusters that have changed.
	rows func(*mirror.Store) func(changed []fleet.Key, now time.Time) []R
	// compare and byTrouble order the rows.
	compare, byTrouble func(a, b R) int
	attributes         func(R) attributes
	// header are the first columns, and wide the further columns of -o wide.
	header, wide []string
	cells        func(R, cellTimes) listCells
	// hasRemedies is true if -o wide has a column REMEDY.
	hasRemedies bool
	// withFlags adds the flags that select the management cluster to the command of a row; nil: rows have no command.
	withFlags func(row *R, flags string)
	// labelled is the kind whose labels --selector selects; empty: that of the rows.
	labelled string
	// unknown is what may be missing if further kinds cannot be read; empty: causes.
	unknown string
	// empty prints that there are no rows; nil: a default.
	empty func(w io.Writer, namespace string) error
}

// attributes are what the flags select rows by. [lists.attributes] returns them for a row; choose and the watch read
// them.
type attributes struct {
	namespace, name string
	labels          map[string]string
	health          fleet.Health
}

// listCells are the cells of a row. The texts come last, because they are long. [lists.cells] returns them for a row,
// and line prints them.
type listCells struct {
	cells  []string
	since  string
	wide   []string
	reason string
	// whole is the reason for -o wide, which is not shortened.
	whole  string
	remedy string
}

// key returns NAMESPACE/NAME, by which --watch recognizes a row.
func (a attributes) key() string { return a.namespace + "/" + a.name }

// listFlags are the flags of the lists.
type listFlags struct {
	all, problems, watch bool
	selector, sortBy     string
	format               *term.Format
}

// addTo adds the flags and the function of a list to its command. GetClustersCommand, GetMachinesCommand and
// GetNodesCommand call it.
func (l lists[R]) addTo(e term.Env, cmd *cobra.Command) {
	connection := management.AddFlags(cmd.Flags())
	f := &listFlags{}
	set := cmd.Flags()
	set.BoolVarP(&f.all, "all-namespaces", "A", false, "list the "+l.kind+" in all namespaces")
	set.StringVarP(&f.selector, "selector", "l", "", "label selector of the "+cmp.Or(l.labelled, l.kind)+", such as team=a,tier!=dev")
	set.BoolVar(&f.problems, "problems", false, "list only "+l.kind+" with a problem")
	set.StringVar(&f.sortBy, "sort-by", "name", "order of the rows: name or trouble, which lists problems first")
	set.BoolVarP(&f.watch, "watch", "w", false, "show changes until the command is interrupted")
	f.format = term.AddOutputFlag(set, "wide")
	cmd.RunE = connection.RunE(e, func(ctx context.Context, c *management.Connection, _ []string) error {
		selector, err := f.check()
		if err != nil {
			return err
		}
		run := listRun[R]{lists: l, listFlags: f, env: e, connection: c, selector: selector, flags: c.RepeatFlags}
		if !f.all {
			run.namespace = c.Namespace
		}
		if f.watch {
			return run.follow(ctx)
		}
		return run.once(ctx)
	})
}

// check validates the flags and returns the label selector.
func (f *listFlags) check() (labels.Selector, error) {
	if f.sortBy != "name" && f.sortBy != "trouble" {
		return nil, fault.New(fault.Invalid, "Usage", "--sort-by %q is neither name nor trouble", f.sortBy)
	}
	if f.watch && f.format.String() != "" && f.format.String() != "wide" {
		return nil, fault.New(fault.Invalid, "Usage", "--watch cannot be used with --output %s", f.format)
	}
	selector, err := labels.Parse(f.selector)
	if err != nil {
		return nil, fault.New(fault.Invalid, "Usage", "--selector %q is not a label selector: %v", f.selector, err).From(err)
	}
	return selector, nil
}

// listRun is one call of a list command. once is its method without --watch, and follow the one with --watch
// (get_lists_watch.go).
type listRun[R any] struct {
	lists[R]
	*listFlags
	env        term.Env
	connection *management.Connection
	selector   labels.Selector
	// namespace is empty for all namespaces.
	namespace string
	// flags select the management cluster, for printed commands.
	flags string
}

// once prints the rows of the current objects.
func (r listRun[R]) once(ctx context.Context) error {
	copied, err := r.newCopy(func() {})
	if err != nil {
		return err
	}
	if err := copied.Load(ctx); err != nil {
		return r.listError(copied, err)
	}
	all := copied.rows(r.env.Now())
	rows := r.choose(all)
	r.note(r.statusOf(copied, all, false), &listStatus{})
	return r.format.Print(r.env.Out, rows, func(w io.Writer) error {
		if len(rows) > 0 {
			return r.print(w, rows)
		}
		if err := noNamespace(ctx, r.connection, r.namespace, r.kind); err != nil {
			return err
		}
		return r.printEmpty(r.env.Err)
	})
}

// listCopy is the copy of the objects of a list. once loads it once, and follow updates it by watches.
type listCopy[R any] struct {
	*mirror.Mirror
	changes *mirror.Changes
	compute func(changed []fleet.Key, now time.Time) []R
}

// newCopy returns a copy without objects. The function is called after each change of an object and of the status. It
// must not block, because the watches call it.
func (r listRun[R]) newCopy(wake func()) (listCopy[R], error) {
	changes := &mirror.Changes{}
	m, err := mirror.New(r.connection.Config, mirror.Options{
		UserAgent: "slipway-get", Namespace: r.namespace, Kinds: r.reads, Required: r.of,
		OnChange: func(c mirror.Change) { changes.Add(c); wake() }, OnStatus: wake,
	})
	if err != nil {
		return listCopy[R]{}, err
	}
	return listCopy[R]{m, changes, r.rows(m.Store)}, nil
}

// rows computes the rows of the clusters that have changed, and returns all rows.
func (c listCopy[R]) rows(now time.Time) []R {
	return c.compute(c.Store.ChangedClusters(c.changes.Take()), now)
}

// listError returns the error for a list that cannot be read.
func (r listRun[R]) listError(copied listCopy[R], err error) error {
	switch {
	case apierrors.IsForbidden(err) && r.namespace == "":
		return fault.New(fault.Invalid, "NotAllowed", "the %s of all namespaces cannot be listed: %s; list one namespace with -n, or use another kubeconfig", r.kind, copied.CopyOf(r.of).Reason).From(err)
	case apierrors.IsForbidden(err):
		return fault.New(fault.Invalid, "NotAllowed", "the %s in namespace %s cannot be listed: %s; use another kubeconfig or namespace", r.kind, r.namespace, copied.CopyOf(r.of).Reason).From(err)
	}
	return err
}

// listStatus describes how complete a list is. statusOf computes it from the copy.
type listStatus struct {
	// outdated is the reason why the rows are not updated; empty if they are.
	outdated string
	// remark describes what may be missing.
	remark string
}

// statusOf returns the status of the rows. isUpdated is true with --watch: an outage of the API server then makes the
// rows outdated, whichever kind has reported it.
func (r listRun[R]) statusOf(copied listCopy[R], all []R, isUpdated bool) listStatus {
	out := listStatus{outdated: copied.CopyOf(r.of).Reason}
	var kinds, remarks []string
	for _, u := range copied.Status().Unreadable {
		if u.Outage && isUpdated {
			out.outdated = cmp.Or(out.outdated, u.Reason)
		} else if u.Kind != r.of {
			kinds = append(kinds, u.Kind.String())
		}
	}
	if len(kinds) > 0 {
		remarks = append(remarks, fmt.Sprintf("%s may be missing, because these kinds cannot be read: %s.", cmp.Or(r.unknown, "Causes"), condition.Names(kinds)))
	}
	if limits := copied.Store.Limits(); len(limits) > 0 {
		remarks = append(remarks, fmt.Sprintf("Causes may be incomplete. %s.", strings.Join(limits, ". ")))
	}
	if text := r.omitted(all); text != "" {
		remarks = append(remarks, text)
	}
	out.remark = strings.Join(remarks, "\n")
	return out
}

// omitted returns the remark about paused objects that --problems does not select, although each waits for a user to resume
// it.
func (r listRun[R]) omitted(all []R) string {
	n := 0
	for _, row := range all {
		if a := r.attributes(row); r.problems && a.health == fleet.Paused && r.isSelected(a) {
			n++
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("1 paused %s is not listed: list it without --problems.", strings.TrimSuffix(r.kind, "s"))
	}
	return fmt.Sprintf("%d paused %s are not listed: list them without --problems.", n, r.kind)
}

// isSelected reports whether the namespace and the labels select a row.
func (r listRun[R]) isSelected(a attributes) bool {
	return (r.namespace == "" || r.namespace == a.namespace) && r.selector.Matches(labels.Set(a.labels))
}

// lines returns the status as text; empty if the list is complete and updated.
func (r listRun[R]) lines(s listStatus) string {
	var out strings.Builder
	if s.outdated != "" {
		fmt.Fprintf(&out, "The %s are not updated: %s.\n", r.kind, s.outdated)
	}
	if s.remark != "" {
		out.WriteString(s.remark + "\n")
	}
	return out.String()
}

// note prints the parts of the status that differ from the last one to standard error.
func (r listRun[R]) note(s listStatus, last *listStatus) {
	differs := listStatus{}
	if s.outdated != last.outdated {
		differs.outdated = s.outdated
	}
	if s.remark != last.remark {
		differs.remark = s.remark
	}
	text := r.lines(differs)
	if s.outdated == "" && last.outdated != "" {
		text = fmt.Sprintf("The %s are updated again.\n", r.kind) + text
	}
	_, _ = io.WriteString(r.env.Err, text)
	*last = s
}

// choose returns the selected rows in order.
func (r listRun[R]) choose(rows []R) []R {
	out := []R{}
	for _, row := range rows {
		a := r.attributes(row)
		if r.isSelected(a) && (!r.problems || a.health == fleet.Problem) {
			if r.withFlags != nil {
				r.withFlags(&row, r.flags)
			}
			out = append(out, row)
		}
	}
	order := r.compare
	if r.sortBy == "trouble" {
		order = r.byTrouble
	}
	slices.SortStableFunc(out, order)
	return out
}

// printEmpty prints that no object is selected: once prints it on standard error, and --watch on the screen.
func (r listRun[R]) printEmpty(w io.Writer) error {
	switch {
	case r.problems:
		_, err := fmt.Fprintf(w, "There are no %s with a problem%s.\n", r.kind, r.place())
		return err
	case r.selector.String() != "":
		_, err := fmt.Fprintf(w, "There are no %s with the labels %s%s.\n", r.kind, r.selector, r.place())
		return err
	case r.empty != nil:
		return r.empty(w, r.namespace)
	}
	_, err := fmt.Fprintf(w, "There are no %s%s.\n", r.kind, r.place())
	return err
}

func (r listRun[R]) place() string {
	if r.namespace == "" {
		return ""
	}
	return " in namespace " + r.namespace + "; -A lists all namespaces"
}

// print prints the rows as a table.
func (r listRun[R]) print(w io.Writer, rows []R) error {
	return r.table(w, rows, true)
}

// table prints the rows as a table. Without a terminal, --watch prints changed rows with it, and the header only once.
func (r listRun[R]) table(w io.Writer, rows []R, withHeader bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	times := cellTimes{r.env.Now()}
	if withHeader {
		r.line(t, "NAMESPACE", listCells{r.header, "SINCE", r.wide, "REASON", "REASON", "REMEDY"})
	}
	for _, row := range rows {
		r.line(t, r.attributes(row).namespace, r.cells(row, times))
	}
	return t.Flush()
}

// line writes one line of the table. Texts of tenants have no line breaks and tabs, and visible control characters.
func (r listRun[R]) line(w io.Writer, namespace string, c listCells) {
	var out []string
	if r.namespace == "" {
		out = append(out, namespace)
	}
	out = append(append(out, c.cells...), c.since)
	isWide := r.format.String() == "wide"
	if isWide {
		out = append(out, c.wide...)
	}
	if isWide {
		out = append(out, c.whole)
	} else {
		out = append(out, c.reason)
	}
	if isWide && r.hasRemedies {
		out = append(out, c.remedy)
	}
	for i, text := range out {
		out[i] = redact.Escape(cmp.Or(strings.Join(strings.Fields(text), " "), "-"))
	}
	_, _ = fmt.Fprintln(w, strings.Join(out, "\t"))
}

// remedyText returns the remedy of a row with its command. Rows of Clusters and Machines show it with -o wide.
func remedyText(c fleet.Cause) string {
	if c.Command == "" {
		return c.Remedy
	}
	return strings.TrimSpace(c.Remedy + " (" + c.Command + ")")
}

// cellTimes formats times relative to now. Each list formats the cells of a row with it.
type cellTimes struct{ now time.Time }

func (t cellTimes) since(at *metav1.Time) string {
	if at == nil {
		return "-"
	}
	return t.age(at.Time)
}

func (t cellTimes) age(at time.Time) string {
	return duration.HumanDuration(max(0, t.now.Sub(at)))
}

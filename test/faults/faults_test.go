package faults

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// row is a fault.
type row struct {
	// id is the identifier in the report of the review; rows N1 to N16 are further faults.
	id, fault string
	// inject prepares the fault in a namespace of its own, and returns the KIND/NAME that is explained.
	inject func(n *namespace) string
	// object, cause and remedy are parts of the explanation: the object at the end of the chain (alternatives are separated
	// by "|"), its message, and what to do or what happens next. The time since when is compared with the time of the injection.
	object, cause, remedy string
	// isRefused is true if the API server refuses the change, so that inject returns the error instead of an object.
	isRefused bool
	// hasCluster is true if a real fault needs a cluster of its own instead of the shared one.
	hasCluster bool
	// isProcess is true for a fault of a process of `slipway up`, which no object of the API reports. The explanation without
	// plans does not apply: it reads a management cluster of another host.
	isProcess bool
}

// Limits of one row: the explanation has to be complete within the first, which begins again with each change of what is
// shown, because a busy host is slow; and within the second in any case.
const (
	limit    = time.Minute
	maxLimit = 5 * time.Minute
)

// waiting decides how long a row is observed.
type waiting struct {
	start, changed time.Time
	before         string
}

// isOver reports whether a limit has passed. An observation that began before does not count, however long it took: it may
// show what the object was at its beginning.
func (w *waiting) isOver(began, ended time.Time, shown string) bool {
	if shown != w.before {
		w.changed, w.before = ended, shown
	}
	return began.Sub(w.changed) >= limit || began.Sub(w.start) >= maxLimit
}

// outcome is the result of a row.
type outcome struct {
	row
	// The fields plans, conditions and page are the scores of explain with plans, of explain without, and of the page.
	plans, conditions, page score
	shown                   explanation
	report                  string
}

func (o outcome) isExplained() bool {
	return o.isExplainedWithPlans() && o.conditions.isComplete()
}

func (o outcome) isExplainedWithPlans() bool { return o.plans.isComplete() && o.page.isComplete() }

// results collects the outcomes of parallel rows.
type results struct {
	mu  sync.Mutex
	all []outcome
}

func (r *results) add(o outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, o)
}

// simulatedRows are the faults of simulated clusters, without the last one.
func simulatedRows() []row {
	return slices.Concat(managementRows(), machineRows(), planeRows(), topologyRows(), otherRows(), ownRows())
}

// TestRows checks the table itself.
func TestRows(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range slices.Concat(simulatedRows(), []row{lastRow()}, realRows()) {
		if seen[r.id] {
			t.Errorf("%s exists twice", r.id)
		}
		seen[r.id] = true
		wants := r.cause != "" && r.remedy != "" && (r.object != "" || r.isRefused)
		if r.inject == nil || !wants || r.fault == "" {
			t.Errorf("%s is incomplete", r.id)
		}
	}
	if len(seen) != 80 {
		t.Errorf("%d faults, want the 64 of the report and 16 others", len(seen))
	}
	for id := range knownGaps() {
		if !seen[id] {
			t.Errorf("the known gap %s is not a row", id)
		}
	}
}

func TestWaiting(t *testing.T) {
	start := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	type observation struct {
		began, ended time.Duration
		shown        string
		want         bool
	}
	for name, observations := range map[string][]observation{
		"many equal observations": {{0, 0, "a", false}, {2 * time.Second, 2 * time.Second, "a", false}, {limit / 2, limit / 2, "a", false}, {limit, limit, "a", true}},
		"the last one changes":    {{0, 0, "a", false}, {limit, limit, "b", false}, {2*limit - 1, 2 * limit, "b", false}, {2 * limit, 2 * limit, "b", true}},
		"slow observations":       {{0, 2 * limit, "a", false}, {2 * limit, 4 * limit, "a", false}, {4 * limit, 5 * limit, "a", true}},
		"it changes for ever":     {{0, 0, "a", false}, {maxLimit - 1, maxLimit - 1, "b", false}, {maxLimit, maxLimit, "c", true}},
	} {
		w := waiting{start: start}
		for i, o := range observations {
			if got := w.isOver(start.Add(o.began), start.Add(o.ended), o.shown); got != o.want {
				t.Errorf("%s: observation %d ends the wait: %t", name, i, got)
			}
		}
	}
	if a, b := (explanation{remedy: "a", age: "1s"}), (explanation{remedy: "b", age: "2s"}); a.key() == b.key() || a.key() != (explanation{remedy: "a", age: "3s"}).key() {
		t.Error("another remedy is a change, another age is none")
	}
}

// TestFaults injects all faults in parallel, and then the one that breaks the provider of all others. SLIPWAY_FAULTS_ONLY
// selects rows with a regular expression.
func TestFaults(t *testing.T) {
	if os.Getenv("SLIPWAY_FAULTS") == "" {
		t.Skip("set SLIPWAY_FAULTS=1, or run make test-faults")
	}
	w := startWorld(t)
	found := &results{}
	only := regexp.MustCompile("^(" + cmp.Or(os.Getenv("SLIPWAY_FAULTS_ONLY"), ".*") + ")$")
	t.Cleanup(func() { t.Log(table(found.all)) })
	t.Run("parallel", func(t *testing.T) {
		for _, r := range simulatedRows() {
			if only.MatchString(r.id) {
				t.Run(r.id, func(t *testing.T) { t.Parallel(); found.check(w.newNamespace(t, r.id), r) })
			}
		}
	})
	if r := lastRow(); only.MatchString(r.id) {
		t.Run(r.id, func(t *testing.T) { found.check(w.newNamespace(t, r.id), r) })
	}
}

// check injects a fault and waits until it is explained.
func (r *results) check(n *namespace, fault row) {
	begun := time.Now()
	what := fault.inject(n)
	if n.Failed() {
		return
	}
	var o outcome
	injected := time.Now()
	if fault.isRefused {
		o = refused(what, fault)
	} else {
		o = n.observe(what, fault, begun)
	}
	r.add(o)
	n.Logf("%s: explained: %t, %s after the fault", fault.id, o.isExplained(), time.Since(injected).Round(time.Second))
	gap, known := knownGaps()[fault.id]
	switch {
	case known && gap.withoutPlans && !o.isExplainedWithPlans():
		n.Errorf("%s (%s) is not explained with plans, or on the page\n%s", fault.id, fault.fault, o.report)
	case known && o.isExplained():
		n.Errorf("%s is explained now: remove it from knownGaps", fault.id)
	case known:
		n.Logf("known gap: explained with %q instead of %q\n%s", gap.printed, gap.wanted, o.report)
	case !o.isExplained():
		n.Errorf("%s (%s) is not explained\n%s", fault.id, fault.fault, o.report)
	}
}

// refused judges the error of a change that the API server refuses. Nothing remains of it, so that it has no age.
func refused(text string, r row) outcome {
	s := judge(explanation{object: r.object, cause: text, remedy: text, age: "0s"}, r, 0)
	return outcome{row: r, plans: s, conditions: s, page: s, shown: explanation{object: "(refused)", cause: join(text, "")}, report: text}
}

// observe explains an object until everything is explained, or a limit has passed.
func (n *namespace) observe(what string, r row, begun time.Time) outcome {
	wait := waiting{start: time.Now()}
	for {
		o := outcome{row: r}
		began := time.Now()
		with, without, shown := n.explain(what, true), n.explain(what, false), n.show(what)
		age := time.Since(begun)
		o.plans, o.conditions, o.page, o.shown = judge(with, r, age), judge(without, r, age), judge(shown, r, age), with
		if r.isProcess {
			o.conditions = o.plans
		}
		o.report = fmt.Sprintf("want %s | %s | %s\n--- with plans: %+v\n%s\n--- without plans: %+v\n%s\n--- page: %+v\n%s", r.object, r.cause, r.remedy, o.plans, with.text, o.conditions, without.text, o.page, shown.text)
		if o.isExplained() || wait.isOver(began, time.Now(), with.key()+without.key()+shown.key()) {
			return o
		}
		select {
		case <-n.Context().Done():
			n.Fatal(n.Context().Err())
		case <-time.After(2 * time.Second):
		}
	}
}

// table formats the outcomes.
func table(all []outcome) string {
	slices.SortFunc(all, func(a, b outcome) int { return strings.Compare(a.id, b.id) })
	var b strings.Builder
	complete, withPlans, mark := 0, 0, map[bool]string{true: "yes", false: "NO"}
	b.WriteString("id    object cause since remedy no-plans page  line\n")
	for _, o := range all {
		if o.isExplained() {
			complete++
		}
		if o.isExplainedWithPlans() {
			withPlans++
		}
		p := o.plans
		line := fmt.Sprintf("%s, since %s: %s -> %s", o.shown.object, o.shown.age, o.shown.cause, o.shown.remedy)
		fmt.Fprintf(&b, "%-5s %-6s %-5s %-5s %-6s %-8s %-5s %.400s\n", o.id, mark[p.object], mark[p.cause], mark[p.since], mark[p.remedy], mark[o.conditions.isComplete()], mark[o.page.isComplete()], line)
	}
	fmt.Fprintf(&b, "%d of %d faults have all four in explain and on the page, %d of them also without plans", withPlans, len(all), complete)
	return b.String()
}

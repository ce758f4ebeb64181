package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/slipwayhq/slipway/test/bench/chart"
	"github.com/slipwayhq/slipway/test/bench/program"
	"github.com/slipwayhq/slipway/test/bench/result"
)

// report is a run of this program.
type report struct {
	Machine result.Machine `json:"machine"`
	// OfClass: the clusters are of a ClusterClass.
	OfClass bool `json:"of_class,omitempty"`
	// OnMachines: their control planes run on Machines.
	OnMachines bool          `json:"on_machines,omitempty"`
	Sizes      []measurement `json:"sizes"`
}

// write writes the files, and the table for people.
func (r report) write(out string, table io.Writer) error {
	if len(r.Sizes) == 0 {
		return nil
	}
	if err := r.table(table); err != nil {
		return err
	}
	var content any = r
	if len(r.Sizes) == 1 {
		content = struct {
			measurement
			Machine result.Machine `json:"machine"`
		}{r.Sizes[0], r.Machine}
	}
	err := program.Write(out, func(w io.Writer) error { return result.JSON(w, content) })
	if err != nil || len(r.Sizes) == 1 {
		return err
	}
	return program.Write(program.Beside(out, ".svg"), r.draw().WriteSVG)
}

// line is a row of the table.
type line struct {
	title string
	of    func(measurement) float64
	goals map[int]float64 // at most, by number of clusters
}

// everywhere is a goal for all numbers of clusters.
const everywhere = 0

// lines are the rows of what clusters cost. Clusters of a class have goals of their own, and so have those on Machines.
func (r report) lines() []line {
	goal := func(without, of, onMachines map[int]float64) map[int]float64 {
		switch {
		case r.OnMachines:
			return onMachines
		case r.OfClass:
			return of
		}
		return without
	}
	at := func(n int, most float64) map[int]float64 { return map[int]float64{n: most} }
	per := func(of func(measurement) float64) func(measurement) float64 {
		return func(m measurement) float64 { return of(m) / float64(m.Clusters) }
	}
	manager := func(m measurement) float64 { return m.ManagerCPU }
	server := func(m measurement) float64 { return m.ServerCPU }
	return []line{
		{"all Available, s", func(m measurement) float64 { return m.WallSeconds }, goal(map[int]float64{1: 3, 100: 60, 1000: 720}, map[int]float64{1: 3, 100: 30, 1000: 360}, map[int]float64{1: 4, 100: 75, 1000: 780})},
		{"manager, CPU s per cluster", per(manager), goal(at(everywhere, 0.4), at(everywhere, 0.4), at(everywhere, 0.8))},
		{"API server, CPU s per cluster", per(server), goal(at(everywhere, 1), nil, nil)},
		{"API writes per cluster", func(m measurement) float64 { return m.Writes }, goal(at(everywhere, 60), at(everywhere, 70), at(everywhere, 90))},
		{"refused API writes per cluster", func(m measurement) float64 { return m.Refused }, goal(nil, at(everywhere, 0), nil)},
		{"API reads per cluster", func(m measurement) float64 { return m.Reads }, nil},
		{"manager, peak MB", func(m measurement) float64 { return m.Manager }, goal(at(100, 300), nil, at(100, 350))},
		{"API server, peak MB", func(m measurement) float64 { return m.Server }, goal(at(100, 1200), nil, nil)},
		{"both, peak MB", func(m measurement) float64 { return m.Both }, nil},
		{"Machine reconcile p99, s", func(m measurement) float64 { return m.ReconcileP99 }, goal(at(100, 1), nil, nil)},
		{"idle, requests/s", func(m measurement) float64 { return m.IdleRequests }, goal(at(100, 0.5), nil, nil)},
		{"idle: writes, leases apart", func(m measurement) float64 { return m.IdleWrites }, goal(nil, at(100, 0), nil)},
		{"idle, % of a core", func(m measurement) float64 { return m.IdleCPU }, goal(at(100, 3), nil, at(100, 5))},
		{"deletion of all, s", func(m measurement) float64 { return m.DeletionSeconds }, goal(at(100, 40), nil, at(100, 40))},
		{"what is left to the garbage collector, s", func(m measurement) float64 { return m.LeftSeconds }, at(1000, 60)},
		{"deletion: manager, CPU s per cluster", per(func(m measurement) float64 { return m.Deletion.ManagerCPU }), nil},
		{"deletion: API server, CPU s per cluster", per(func(m measurement) float64 { return m.Deletion.ServerCPU }), nil},
		{"deletion: API writes per cluster", func(m measurement) float64 { return m.Deletion.Writes }, nil},
		{"taken by others: while they come up, %", func(m measurement) float64 { return m.Stolen }, nil},
		{"taken by others: while idle, %", func(m measurement) float64 { return m.IdleStolen }, nil},
		{"taken by others: while they are deleted, %", func(m measurement) float64 { return m.Deletion.Stolen }, nil},
	}
}

// changeLines are the rows of the changes of a class.
func changeLines() []line {
	of := func(f func(changes) float64) func(measurement) float64 {
		return func(m measurement) float64 {
			if m.Changes == nil {
				return math.NaN()
			}
			return f(*m.Changes)
		}
	}
	none := map[int]float64{everywhere: 0}
	return []line{
		{"label of the class: on all Machines, s", of(func(c changes) float64 { return c.Metadata.Seconds }), map[int]float64{100: 10}},
		{"label of the class: Machines replaced", of(func(c changes) float64 { return float64(c.Metadata.Replaced) }), none},
		{"label of the class: API writes per cluster", of(func(c changes) float64 { return c.Metadata.Writes }), nil},
		{"template of the class: all replaced, s", of(func(c changes) float64 { return c.Template.Seconds }), map[int]float64{100: 60}},
		{"template of the class: API writes per cluster", of(func(c changes) float64 { return c.Template.Writes }), nil},
		{"template of the class: manager, CPU s per cluster", of(func(c changes) float64 { return c.Template.ManagerCPU }), nil},
	}
}

// upgradeLines are the rows of the upgrade of all.
func upgradeLines() []line {
	of := func(f func(upgrade) float64) func(measurement) float64 {
		return func(m measurement) float64 {
			if m.Upgrade == nil {
				return math.NaN()
			}
			return f(*m.Upgrade)
		}
	}
	return []line{
		{"upgrade of all at once: every Machine replaced, s", of(func(u upgrade) float64 { return u.Seconds }), nil},
		{"upgrade: Machines replaced", of(func(u upgrade) float64 { return float64(u.Replaced) }), nil},
		{"upgrade: API writes per cluster", of(func(u upgrade) float64 { return u.Writes }), nil},
		{"upgrade: manager, CPU s per cluster", of(func(u upgrade) float64 { return u.ManagerCPU }), nil},
		{"upgrade: states of etcd that were reported", of(func(u upgrade) float64 { return float64(u.States) }), nil},
		{"upgrade: of them below quorum", of(func(u upgrade) float64 { return float64(len(u.BelowQuorum)) }), map[int]float64{everywhere: 0}},
		{"upgrade: taken by others, %", of(func(u upgrade) float64 { return u.Stolen }), nil},
	}
}

// growthLines are the rows of each step of the MachineDeployment.
func growthLines(step int, g growth) []line {
	of := func(f func(growth) float64) func(measurement) float64 {
		return func(m measurement) float64 {
			if len(m.Growth) <= step {
				return math.NaN()
			}
			return f(m.Growth[step])
		}
	}
	goal := func(most float64) map[int]float64 {
		if g.From != 1 || g.To != firstStep {
			return nil
		}
		return map[int]float64{everywhere: most}
	}
	name := fmt.Sprintf("%d→%d workers: ", g.From, g.To)
	return []line{
		{name + "all Running, s", of(func(g growth) float64 { return g.Seconds }), goal(6)},
		{name + "API writes per worker", of(func(g growth) float64 { return g.WritesPer }), goal(16)},
		{name + "manager CPU s per worker", of(func(g growth) float64 { return g.ManagerCPU }), goal(0.06)},
		{name + "API server CPU s per worker", of(func(g growth) float64 { return g.ServerCPU }), nil},
		{name + "taken by others, %", of(func(g growth) float64 { return g.Stolen }), nil},
	}
}

// table writes one column for each number of clusters. A star stands where a goal is missed.
func (r report) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	m := r.Machine
	_, _ = fmt.Fprintf(w, "%s: %d cores, %s; slipway %s, Kubernetes %s, %s; load before %.2f\n\n", m.Date, m.Cores, m.System, m.Slipway, m.Kubernetes, m.Go, m.LoadBefore)
	cells := []string{"CLUSTERS"}
	for _, s := range r.Sizes {
		cells = append(cells, strconv.Itoa(s.Clusters))
	}
	row := func(cells []string) { _, _ = fmt.Fprintln(t, strings.Join(cells, "\t")+"\t") }
	row(append(cells, "GOAL"))
	all := r.lines()
	if r.Sizes[0].Changes != nil {
		all = append(all, changeLines()...)
	}
	if r.Sizes[0].Upgrade != nil {
		all = append(all, upgradeLines()...)
	}
	for step, g := range r.Sizes[0].Growth {
		all = append(all, growthLines(step, g)...)
	}
	if n := len(r.Sizes[0].Growth); n > 0 {
		title := fmt.Sprintf("%d→1 workers: all others gone, s", r.Sizes[0].Growth[n-1].To)
		all = append(all, line{title, func(m measurement) float64 { return m.ShrinkSeconds }, nil},
			line{"meanwhile: manager, peak MB", func(m measurement) float64 { return m.Growing.Manager }, nil},
			line{"meanwhile: API server, peak MB", func(m measurement) float64 { return m.Growing.Server }, nil})
	}
	all = append(all, line{"pace of the machine before, µs", func(m measurement) float64 { return microseconds(m.PaceBefore) }, nil},
		line{"after, µs", func(m measurement) float64 { return microseconds(m.PaceAfter) }, nil})
	for _, l := range all {
		cells := []string{l.title}
		for _, s := range r.Sizes {
			cells = append(cells, l.cell(s))
		}
		row(append(cells, l.goal()))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\n* misses the goal")
	return err
}

func (l line) cell(m measurement) string {
	v := l.of(m)
	if math.IsNaN(v) {
		return "-"
	}
	text := strconv.FormatFloat(v, 'f', digits(v), 64)
	goal, ok := l.goals[m.Clusters]
	if !ok {
		goal, ok = l.goals[everywhere]
	}
	if ok && v > goal {
		text = "*" + text
	}
	return text
}

func (l line) goal() string {
	if g, ok := l.goals[everywhere]; ok {
		return "≤ " + strconv.FormatFloat(g, 'f', -1, 64)
	}
	var all []string
	for _, n := range []int{1, 100, 1000} {
		if g, ok := l.goals[n]; ok {
			all = append(all, fmt.Sprintf("≤ %s at %d", strconv.FormatFloat(g, 'f', -1, 64), n))
		}
	}
	return strings.Join(all, ", ")
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// digits after the point that mean something.
func digits(v float64) int {
	switch {
	case v < 1:
		return 3
	case v < 100:
		return 1
	}
	return 0
}

// draw shows how cost grows with the number of clusters.
func (r report) draw() chart.Chart {
	c := chart.Chart{Title: "Slipway with simulated clusters", Axis: chart.Axis{Title: "clusters", Log: true}}
	for _, s := range r.Sizes {
		c.Axis.Ticks = append(c.Axis.Ticks, float64(s.Clusters))
	}
	curve := func(name string, of func(measurement) float64) chart.Line {
		l := chart.Line{Name: name}
		for _, s := range r.Sizes {
			l.Points = append(l.Points, chart.Point{At: float64(s.Clusters), Value: of(s)})
		}
		return l
	}
	n := func(m measurement) float64 { return float64(m.Clusters) }
	c.Panels = []chart.Panel{
		{Title: "seconds per cluster until all are Available", Lines: []chart.Line{
			curve("wall", func(m measurement) float64 { return m.WallSeconds / n(m) }),
		}},
		{Title: "CPU seconds per cluster", Lines: []chart.Line{
			curve("manager", func(m measurement) float64 { return m.ManagerCPU / n(m) }),
			curve("API server", func(m measurement) float64 { return m.ServerCPU / n(m) }),
		}},
		{Title: "API requests per cluster", Lines: []chart.Line{
			curve("writes", func(m measurement) float64 { return m.Writes }),
			curve("reads", func(m measurement) float64 { return m.Reads }),
		}},
		{Title: "peak memory, MB", Lines: []chart.Line{
			curve("manager", func(m measurement) float64 { return m.Manager }),
			curve("API server", func(m measurement) float64 { return m.Server }),
		}},
	}
	return c
}

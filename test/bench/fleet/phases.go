package fleet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/slipwayhq/slipway/test/bench/harness"
)

// phase is a measurement without or with a fault.
type phase struct {
	fault     string
	before    string // the next fault; empty in a phase with a fault
	round     int
	latencies []latency
	stolen    float64 // by the host, 0 to 1
}

type phases []phase

func whole(l latency) time.Duration { return l.whole }
func own(l latency) time.Duration   { return l.own }

func (all phases) where(matches func(phase) bool) phases {
	return slices.DeleteFunc(slices.Clone(all), func(p phase) bool { return !matches(p) })
}

// with returns the phases with a fault, and without returns the phases of all rounds without one.
func (all phases) with(f fault) phases {
	return all.where(func(p phase) bool { return p.fault == f.name })
}

func (all phases) without() phases { return all.with(noFault()) }

func (all phases) durations(part func(latency) time.Duration) []time.Duration {
	var out []time.Duration
	for _, p := range all {
		for _, l := range p.latencies {
			out = append(out, part(l))
		}
	}
	return out
}

func (all phases) p99(part func(latency) time.Duration) time.Duration {
	return harness.Quantile(all.durations(part), 0.99)
}

// ratio is the p99 divided by the p99 of other phases; 0 without a measurement.
func (all phases) ratio(others phases, part func(latency) time.Duration) float64 {
	base := others.p99(part)
	if base == 0 {
		return 0
	}
	return all.p99(part).Seconds() / base.Seconds()
}

func (all phases) rounds() int {
	n := 0
	for _, p := range all {
		n = max(n, p.round+1)
	}
	return n
}

// interval is the 90 % confidence interval of a ratio, from a bootstrap over the rounds, whose phases belong together. The
// result is the same each time.
func (all phases) interval(healthy phases) (low, high float64) {
	const draws = 1000
	n := all.rounds()
	if n == 0 {
		return 0, 0
	}
	random := rand.New(rand.NewPCG(0, 0))
	of := func(source phases, round int) phases {
		return source.where(func(p phase) bool { return p.round == round })
	}
	ratios := make([]float64, draws)
	for i := range ratios {
		var drawn, drawnHealthy phases
		for range n {
			round := random.IntN(n)
			drawn, drawnHealthy = append(drawn, of(all, round)...), append(drawnHealthy, of(healthy, round)...)
		}
		ratios[i] = drawn.ratio(drawnHealthy, whole)
	}
	slices.Sort(ratios)
	return ratios[draws/20], ratios[draws-1-draws/20]
}

func (all phases) figures(host *harness.Host) []harness.Figure {
	figures := all.percentiles(noFault(), all.without())
	for _, f := range faults() {
		figures = append(append(figures, all.percentiles(f, all.with(f))...), all.comparison(f)...)
	}
	stolen := 0.0
	for _, p := range all {
		stolen = max(stolen, p.stolen)
	}
	return append(figures,
		harness.NewFigure("isolation.stolen", "the host took of the processors' time, in the worst phase (%)", 100*stolen, harness.Count),
		harness.NewFigure("isolation.again", fmt.Sprintf("  comparisons made again because it took more than %.1f %%", 100*harness.MaxStolen), float64(host.Repeats), harness.Count),
		harness.NewFigure("isolation.held", "  time for that, and to wait for the host before a comparison (s)", host.Waited.Seconds(), harness.Count))
}

func (all phases) percentiles(f fault, of phases) []harness.Figure {
	times := of.durations(whole)
	figure := func(suffix, title string, value float64) harness.Figure {
		return harness.NewFigure("isolation."+f.name+suffix, title, value, harness.Count)
	}
	return []harness.Figure{
		figure(".p50", f.title+": p50 of the others (ms)", harness.Milliseconds(harness.Quantile(times, 0.5))),
		figure(".p99", "  p99 of the others (ms)", harness.Milliseconds(of.p99(whole))),
		figure(".own.p99", "  p99 from when the management cluster shows it (ms)", harness.Milliseconds(of.p99(own))),
		figure(".changes", "  changes", float64(len(times))),
	}
}

// comparison compares the phases with a fault with all phases without one, which repeats better than only the phases before
// the fault. The control compares phases under equal conditions, as many as the comparison.
func (all phases) comparison(f fault) []harness.Figure {
	sick, healthy := all.with(f), all.without()
	low, high := sick.interval(healthy)
	control := healthy.where(func(p phase) bool { return p.before == f.name }).ratio(healthy.where(func(p phase) bool { return p.before != f.name }), whole)
	figure := func(suffix, title string, value float64) harness.Figure {
		return harness.NewFigure("isolation."+f.name+suffix, title, value, harness.Count)
	}
	return []harness.Figure{
		figure(".ratio", "  p99, of that while all are well", sick.ratio(healthy, whole)).AtMost(1.1),
		figure(".ratio.low", "    90 % confidence interval: from", low),
		figure(".ratio.high", "    to", high),
		figure(".own.ratio", "  the same from when the management cluster shows it", sick.ratio(healthy, own)),
		figure(".control", "  control: p99 right before, of that of the others while all are well", control),
	}
}

// rows are all changes as CSV.
func (all phases) rows() [][]string {
	rows := [][]string{{"round", "sickness", "before", "ms", "own_ms"}}
	number := func(d time.Duration) string { return strconv.FormatFloat(harness.Milliseconds(d), 'f', 3, 64) }
	for _, p := range all {
		for _, l := range p.latencies {
			rows = append(rows, []string{strconv.Itoa(p.round + 1), p.fault, p.before, number(l.whole), number(l.own)})
		}
	}
	return rows
}

// chart shows the p99 by round.
func (all phases) chart() harness.Chart {
	c := harness.Chart{Title: "Changes in the clusters that are well, until they arrive on the Node", Axis: harness.Axis{Title: "round"}}
	for round := range all.rounds() {
		c.Axis.Ticks = append(c.Axis.Ticks, float64(round+1))
	}
	for _, f := range faults() {
		lines := []harness.Line{{Name: noFault().title}, {Name: f.title}}
		for _, p := range all {
			at, value := float64(p.round+1), harness.Milliseconds(phases{p}.p99(whole))
			switch f.name {
			case p.before:
				lines[0].Add(at, value)
			case p.fault:
				lines[1].Add(at, value)
			}
		}
		c.Panels = append(c.Panels, harness.Panel{Title: "p99, ms: " + f.name, Lines: lines})
	}
	return c
}

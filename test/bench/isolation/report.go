package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/slipwayhq/slipway/test/bench/chart"
	"github.com/slipwayhq/slipway/test/bench/host"
	"github.com/slipwayhq/slipway/test/bench/latency"
	"github.com/slipwayhq/slipway/test/bench/program"
	"github.com/slipwayhq/slipway/test/bench/result"
)

// most is how much the others' p99 may grow (issue 3).
const most = 1.1

// outputs are where the results go.
type outputs struct {
	json, changes, drawing string
	table                  io.Writer
}

// figures of all phases.
func figures(found findings) []result.Figure {
	phases := found.phases
	out := percentiles("well", well().title, those(phases, phase.well))
	for _, s := range sicknesses() {
		out = append(out, percentiles(s.name, s.title, those(phases, s.during))...)
		out = append(out, comparison(phases, s)...)
	}
	stolen := 0.0
	for _, p := range phases {
		stolen = max(stolen, p.stolen)
	}
	return append(out,
		result.Figure{Name: "isolation.stolen", Title: "the host took of the processors' time, in the worst phase (%)", Value: 100 * stolen},
		result.Figure{
			Name: "isolation.again", Title: fmt.Sprintf("  comparisons made again because it took more than %.1f %%", 100*host.Most),
			Value: float64(found.again),
		},
		result.Figure{Name: "isolation.held", Title: "  time for that, and to wait for the host before a comparison (s)", Value: found.held.Seconds()},
	)
}

// percentiles are the middle and the end of what changes took in some phases.
func percentiles(name, title string, phases []phase) []result.Figure {
	all := pool(phases, whole)
	return []result.Figure{
		{Name: "isolation." + name + ".p50", Title: title + ": p50 of the others (ms)", Value: milliseconds(latency.Quantile(all, 0.5))},
		{Name: "isolation." + name + ".p99", Title: "  p99 of the others (ms)", Value: milliseconds(p99(phases, whole))},
		{Name: "isolation." + name + ".own.p99", Title: "  p99 from when the management cluster shows it (ms)", Value: milliseconds(p99(phases, own))},
		{Name: "isolation." + name + ".changes", Title: "  changes", Value: float64(len(all))},
	}
}

// comparison is what a sickness did to the others. Phases without a sickness alternate with the others all the time, so all of
// them are what it is compared with: four times as many make the ratio repeat better than those right before it would.
func comparison(phases []phase, s sickness) []result.Figure {
	sick := those(phases, s.during)
	healthy := those(phases, phase.well)
	low, high := interval(sick, healthy)
	return []result.Figure{
		result.Figure{
			Name: "isolation." + s.name + ".ratio", Title: "  p99, of that while all are well", Value: ratio(sick, healthy, whole),
		}.AtMost(most),
		{Name: "isolation." + s.name + ".ratio.low", Title: "    90 % confidence interval: from", Value: low},
		{Name: "isolation." + s.name + ".ratio.high", Title: "    to", Value: high},
		{Name: "isolation." + s.name + ".own.ratio", Title: "  the same from when the management cluster shows it", Value: ratio(sick, healthy, own)},
		{Name: "isolation." + s.name + ".control", Title: "  control: p99 right before, of that of the others while all are well", Value: control(phases, s)},
	}
}

// control compares phases that should be equal, as many as a comparison does: those before a sickness with the others without one.
func control(phases []phase, s sickness) float64 {
	before := those(phases, func(p phase) bool { return p.before == s.name })
	others := those(phases, func(p phase) bool { return p.well() && p.before != s.name })
	return ratio(before, others, whole)
}

// whole and own are the parts of a lapse.
func whole(l lapse) time.Duration { return l.whole }
func own(l lapse) time.Duration   { return l.own }

func those(phases []phase, which func(phase) bool) []phase {
	var out []phase
	for _, p := range phases {
		if which(p) {
			out = append(out, p)
		}
	}
	return out
}

// pool is what changes took in all phases together.
func pool(phases []phase, part func(lapse) time.Duration) []time.Duration {
	var took []time.Duration
	for _, p := range phases {
		for _, l := range p.took {
			took = append(took, part(l))
		}
	}
	return took
}

func p99(phases []phase, part func(lapse) time.Duration) time.Duration {
	return latency.Quantile(pool(phases, part), 0.99)
}

// ratio of the p99 of some phases to that of others; 0 where nothing was measured.
func ratio(of, to []phase, part func(lapse) time.Duration) float64 {
	base := p99(to, part)
	if base == 0 {
		return 0
	}
	return p99(of, part).Seconds() / base.Seconds()
}

// draws is how often rounds are drawn for an interval.
const draws = 1000

// interval says how far a ratio would repeat: 5 % of the ratios are below low and 5 % above high when as many rounds as were
// measured are drawn from them, with repetition (a bootstrap). A round's phases belong together. It is the same each time for
// the same phases.
func interval(sick, healthy []phase) (low, high float64) {
	n := rounds(sick)
	if n == 0 {
		return 0, 0
	}
	of, to := byRound(sick, n), byRound(healthy, n)
	random := rand.New(rand.NewPCG(0, 0))
	ratios := make([]float64, draws)
	for i := range ratios {
		var someSick, someHealthy []phase
		for range n {
			round := random.IntN(n)
			someSick, someHealthy = append(someSick, of[round]...), append(someHealthy, to[round]...)
		}
		ratios[i] = ratio(someSick, someHealthy, whole)
	}
	slices.Sort(ratios)
	return ratios[draws/20], ratios[draws-1-draws/20]
}

// byRound sorts phases by their round, of n.
func byRound(phases []phase, n int) [][]phase {
	out := make([][]phase, n)
	for _, p := range phases {
		out[p.round] = append(out[p.round], p)
	}
	return out
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

// write writes the files, and the table for people.
func write(found findings, on result.Machine, o outputs) error {
	r := result.Report{Machine: on, Figures: figures(found)}
	if err := r.WriteTable(o.table); err != nil {
		return err
	}
	if err := program.Write(o.json, r.WriteJSON); err != nil {
		return err
	}
	if err := program.Write(o.changes, func(w io.Writer) error { return list(w, found.phases) }); err != nil {
		return err
	}
	return program.Write(o.drawing, draw(found.phases).WriteSVG)
}

// list writes each change as a line of CSV: for whoever wants to look at them in another way.
func list(w io.Writer, phases []phase) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"round", "sickness", "before", "ms", "own_ms"}) // Error says
	for _, p := range phases {
		for _, l := range p.took {
			_ = out.Write([]string{
				strconv.Itoa(p.round + 1), p.sickness, p.before,
				strconv.FormatFloat(milliseconds(l.whole), 'f', 3, 64), strconv.FormatFloat(milliseconds(l.own), 'f', 3, 64),
			})
		}
	}
	out.Flush()
	return out.Error()
}

// draw shows the p99 of the others, round by round.
func draw(phases []phase) chart.Chart {
	c := chart.Chart{Title: "Changes in the clusters that are well, until they arrive on the Node", Axis: chart.Axis{Title: "round"}}
	for round := range rounds(phases) {
		c.Axis.Ticks = append(c.Axis.Ticks, float64(round+1))
	}
	for _, s := range sicknesses() {
		sick, healthy := chart.Line{Name: s.title}, chart.Line{Name: well().title}
		for _, p := range phases {
			at := chart.Point{At: float64(p.round + 1), Value: milliseconds(p99([]phase{p}, whole))}
			switch s.name {
			case p.sickness:
				sick.Points = append(sick.Points, at)
			case p.before:
				healthy.Points = append(healthy.Points, at)
			}
		}
		c.Panels = append(c.Panels, chart.Panel{Title: fmt.Sprintf("p99, ms: %s", s.name), Lines: []chart.Line{healthy, sick}})
	}
	return c
}

func rounds(phases []phase) int {
	n := 0
	for _, p := range phases {
		n = max(n, p.round+1)
	}
	return n
}

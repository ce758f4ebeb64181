package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/slipwayhq/slipway/test/bench/chart"
	"github.com/slipwayhq/slipway/test/bench/latency"
	"github.com/slipwayhq/slipway/test/bench/program"
	"github.com/slipwayhq/slipway/test/bench/result"
)

// most is how much the others' p99 may grow (issue 3).
const most = 1.1

// outputs are where the results go.
type outputs struct {
	json, drawing string
	table         io.Writer
}

// figures of all phases.
func figures(found findings) []result.Figure {
	phases := found.phases
	out := percentiles("well", well().title, those(phases, func(p phase) bool { return p.before != "" }))
	for _, s := range sicknesses() {
		out = append(out, percentiles(s.name, s.title, those(phases, func(p phase) bool { return p.sickness == s.name }))...)
		out = append(out, comparison(phases, s)...)
	}
	stolen := 0.0
	for _, p := range phases {
		stolen = max(stolen, p.stolen)
	}
	return append(out,
		result.Figure{Name: "isolation.control.ratio", Title: "all are well: p99 of every other round, of the rounds between", Value: control(phases)},
		result.Figure{Name: "isolation.stolen", Title: "the host took of the processors' time, in the worst phase (%)", Value: 100 * stolen},
		result.Figure{
			Name: "isolation.again", Title: fmt.Sprintf("  comparisons made again because it took more than %.1f %%", 100*mostStolen),
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

// comparison is what a sickness did to the others.
func comparison(phases []phase, s sickness) []result.Figure {
	sick := those(phases, func(p phase) bool { return p.sickness == s.name })
	healthy := those(phases, func(p phase) bool { return p.before == s.name })
	low, high := interval(sick, healthy)
	return []result.Figure{
		result.Figure{
			Name: "isolation." + s.name + ".ratio", Title: "  p99, of that in the phases between", Value: ratio(sick, healthy, whole),
		}.AtMost(most),
		{Name: "isolation." + s.name + ".ratio.low", Title: "    90 % confidence interval: from", Value: low},
		{Name: "isolation." + s.name + ".ratio.high", Title: "    to", Value: high},
		{Name: "isolation." + s.name + ".own.ratio", Title: "  the same from when the management cluster shows it", Value: ratio(sick, healthy, own)},
	}
}

// control compares phases that should be equal.
func control(phases []phase) float64 {
	even := those(phases, func(p phase) bool { return p.before != "" && p.round%2 == 0 })
	odd := those(phases, func(p phase) bool { return p.before != "" && p.round%2 == 1 })
	return ratio(odd, even, whole)
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
// measured are drawn from them, with repetition (a bootstrap). A round's two phases belong together. It is the same each time
// for the same phases.
func interval(sick, healthy []phase) (low, high float64) {
	if len(sick) == 0 || len(sick) != len(healthy) {
		return 0, 0
	}
	random := rand.New(rand.NewPCG(0, 0))
	ratios := make([]float64, draws)
	for i := range ratios {
		var of, to []phase
		for range sick {
			round := random.IntN(len(sick))
			of, to = append(of, sick[round]), append(to, healthy[round])
		}
		ratios[i] = ratio(of, to, whole)
	}
	slices.Sort(ratios)
	return ratios[draws/20], ratios[draws-1-draws/20]
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

// write writes the files, and the table for people.
func write(found findings, host result.Machine, o outputs) error {
	r := result.Report{Machine: host, Figures: figures(found)}
	if err := r.WriteTable(o.table); err != nil {
		return err
	}
	if err := program.Write(o.json, r.WriteJSON); err != nil {
		return err
	}
	return program.Write(o.drawing, draw(found.phases).WriteSVG)
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

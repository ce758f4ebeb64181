package main

import (
	"fmt"
	"io"
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
	out := percentiles("well", well().title, phases, func(p phase) bool { return p.before != "" })
	for _, s := range sicknesses() {
		sick := func(p phase) bool { return p.sickness == s.name }
		healthy := func(p phase) bool { return p.before == s.name }
		out = append(out, percentiles(s.name, s.title, phases, sick)...)
		out = append(out,
			result.Figure{Name: "isolation." + s.name + ".ratio", Title: "  p99, of that in the phases between", Value: ratio(phases, sick, healthy)}.AtMost(most),
		)
	}
	even := func(p phase) bool { return p.before != "" && p.round%2 == 0 }
	odd := func(p phase) bool { return p.before != "" && p.round%2 == 1 }
	stolen := 0.0
	for _, p := range phases {
		stolen = max(stolen, p.stolen)
	}
	return append(out,
		result.Figure{
			Name: "isolation.control.ratio", Title: "all are well: p99 of every other round, of the rounds between", Value: ratio(phases, odd, even),
		},
		result.Figure{Name: "isolation.stolen", Title: "the host took of the processors' time, in the worst phase (%)", Value: 100 * stolen},
		result.Figure{
			Name: "isolation.again", Title: fmt.Sprintf("  comparisons made again because it took more than %.1f %%", 100*mostStolen),
			Value: float64(found.again),
		},
	)
}

// percentiles are the middle and the end of what changes took in some phases, and the passes of the Machine controller.
func percentiles(name, title string, phases []phase, of func(phase) bool) []result.Figure {
	took, passes := pool(phases, of)
	return []result.Figure{
		{Name: "isolation." + name + ".p50", Title: title + ": p50 of the others (ms)", Value: milliseconds(latency.Quantile(took, 0.5))},
		{Name: "isolation." + name + ".p99", Title: "  p99 of the others (ms)", Value: milliseconds(latency.Quantile(took, 0.99))},
		{Name: "isolation." + name + ".changes", Title: "  changes", Value: float64(len(took))},
		{Name: "isolation." + name + ".reconcile.p99", Title: "  Machine controller, passes of all clusters, p99 (ms)", Value: 1000 * passes.Quantile(0.99)},
	}
}

// pool is what changes took in some phases together, and how long the passes.
func pool(phases []phase, of func(phase) bool) ([]time.Duration, latency.Histogram) {
	var took []time.Duration
	var passes latency.Histogram
	for _, p := range phases {
		if !of(p) {
			continue
		}
		took = append(took, p.took...)
		if passes == nil {
			passes = slices.Clone(p.reconciles)
			continue
		}
		for i := range p.reconciles { // of the same controller, so with the same buckets
			passes[i].Count += p.reconciles[i].Count
		}
	}
	return took, passes
}

func ratio(phases []phase, of, to func(phase) bool) float64 {
	a, _ := pool(phases, of)
	b, _ := pool(phases, to)
	if len(a) == 0 || len(b) == 0 {
		return 0
	}
	return latency.Quantile(a, 0.99).Seconds() / latency.Quantile(b, 0.99).Seconds()
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
			at := chart.Point{At: float64(p.round + 1), Value: milliseconds(latency.Quantile(p.took, 0.99))}
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

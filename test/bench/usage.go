package main

import (
	"encoding/csv"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/slipwayhq/slipway/test/bench/chart"
	"github.com/slipwayhq/slipway/test/bench/procfs"
	"github.com/slipwayhq/slipway/test/bench/result"
)

// load is what some processes use.
type load struct {
	Memory int64         // resident, bytes
	CPU    time.Duration // since they began
}

// usage is what an installation uses at one moment.
type usage struct {
	At         time.Time
	Management load // the process of the management cluster and what it started, except:
	Hosted     load // the hosted control planes
}

// divide tells the hosted control planes, with all below them, from the rest of a process tree, whose parents come before
// their children.
func divide(tree []procfs.Process, hosted func(pid int) bool) usage {
	page := int64(os.Getpagesize())
	below := map[int]bool{}
	var u usage
	for i, p := range tree {
		part := &u.Management
		if i > 0 && (below[p.Parent] || hosted(p.PID)) {
			below[p.PID] = true
			part = &u.Hosted
		}
		part.Memory += p.Pages * page
		part.CPU += p.CPU
	}
	return u
}

// percent is the share of one core that was used between two moments.
func percent(before, after load, within time.Duration) float64 {
	if within <= 0 {
		return 0
	}
	return max(0, 100*(after.CPU-before.CPU).Seconds()/within.Seconds())
}

// smooth is how many samples one value of processor use is over: the kernel counts in steps of 10 ms, which is 5 % of a
// core in a single interval.
const smooth = 5

// draw makes the drawing of the quickstart.
func draw(began time.Time, samples []usage, steps []result.Step) chart.Chart {
	c := chart.Chart{Title: "Slipway from applying the quickstart until it settled"}
	for _, s := range steps {
		c.Marks = append(c.Marks, chart.Mark{At: s.After.Seconds(), Name: s.Name})
	}
	memory := chart.Panel{Title: "resident memory, MB"}
	processor := chart.Panel{Title: "processor use, % of one core"}
	for _, part := range []struct {
		name string
		of   func(usage) load
	}{
		{"management cluster", func(u usage) load { return u.Management }},
		{"hosted control plane", func(u usage) load { return u.Hosted }},
	} {
		m, p := chart.Line{Name: part.name}, chart.Line{Name: part.name}
		for i, s := range samples {
			at := s.At.Sub(began).Seconds()
			m.Points = append(m.Points, chart.Point{At: at, Value: float64(part.of(s).Memory) / 1e6})
			if i >= smooth {
				earlier := samples[i-smooth]
				p.Points = append(p.Points, chart.Point{At: at, Value: percent(part.of(earlier), part.of(s), s.At.Sub(earlier.At))})
			}
		}
		memory.Lines, processor.Lines = append(memory.Lines, m), append(processor.Lines, p)
	}
	c.Panels = []chart.Panel{memory, processor}
	return c
}

// list writes the samples as a table of comma separated values.
func list(w io.Writer, began time.Time, samples []usage) error {
	table := csv.NewWriter(w)
	rows := [][]string{{"seconds", "management_mb", "management_cpu_seconds", "hosted_mb", "hosted_cpu_seconds"}}
	number := func(v float64, digits int) string { return strconv.FormatFloat(v, 'f', digits, 64) }
	for _, s := range samples {
		rows = append(rows, []string{
			number(s.At.Sub(began).Seconds(), 2),
			number(float64(s.Management.Memory)/1e6, 1), number(s.Management.CPU.Seconds(), 2),
			number(float64(s.Hosted.Memory)/1e6, 1), number(s.Hosted.CPU.Seconds(), 2),
		})
	}
	return table.WriteAll(rows)
}

// most is the greatest memory of a part over the samples, in MB.
func most(samples []usage, part func(usage) load) float64 {
	var top int64
	for _, s := range samples {
		top = max(top, part(s).Memory)
	}
	return float64(top) / 1e6
}

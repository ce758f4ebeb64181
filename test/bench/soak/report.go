package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/slipwayhq/slipway/test/bench/chart"
	"github.com/slipwayhq/slipway/test/bench/program"
)

// report is what a soak found.
type report struct {
	Seed         uint64         `json:"seed"`
	Clusters     int            `json:"clusters"`
	Kills        int            `json:"kills"`
	SlowestStart float64        `json:"slowest_start_seconds"` // of the manager, after a kill
	Actions      map[string]int `json:"actions"`
	Moved        int            `json:"moved"`   // to another management cluster and back
	Refused      int            `json:"refused"` // moves, because something failed
	Lies         map[string]int `json:"lies"`    // of an extension, by kind
	Objects      map[string]int `json:"objects"` // at the end, by kind
	Old          held           `json:"manager_after_work"`
	Fresh        held           `json:"manager_fresh"`
	Samples      []sample       `json:"samples"`
}

// held is what a manager holds while nothing happens.
type held struct {
	Goroutines int     `json:"goroutines"`
	Files      int     `json:"files"` // open descriptors
	MB         float64 `json:"memory_mb"`
}

type sample struct {
	After     float64 `json:"after_seconds"`
	ManagerMB float64 `json:"manager_mb"`
	ServerMB  float64 `json:"apiserver_mb"`
}

// What a manager that has worked may hold more than a fresh one: idle connections and pools come and go.
const (
	spare  = 40   // goroutines and files
	growth = 1.25 // memory, as a factor
)

// judge fails if something leaks.
func (r *report) judge() error {
	var problems []error
	if r.Old.Goroutines > r.Fresh.Goroutines+spare {
		problems = append(problems, fmt.Errorf("goroutines leak: %d after work, %d in a fresh manager", r.Old.Goroutines, r.Fresh.Goroutines))
	}
	if r.Old.Files > r.Fresh.Files+spare {
		problems = append(problems, fmt.Errorf("files leak: %d after work, %d in a fresh manager", r.Old.Files, r.Fresh.Files))
	}
	middle, last := r.thirds(func(s sample) float64 { return s.ServerMB })
	if last > middle*growth {
		problems = append(problems, fmt.Errorf("the API server's memory grows: %.0f MB on average in the middle third, %.0f MB in the last", middle, last))
	}
	middle, last = r.thirds(func(s sample) float64 { return s.ManagerMB })
	if last > middle*growth {
		problems = append(problems, fmt.Errorf("the manager's memory grows: %.0f MB on average in the middle third, %.0f MB in the last", middle, last))
	}
	return errors.Join(problems...)
}

// thirds are the averages over the middle and the last third of the samples.
func (r *report) thirds(of func(sample) float64) (middle, last float64) {
	n := len(r.Samples) / 3
	if n == 0 {
		return 0, 0
	}
	for _, s := range r.Samples[n : 2*n] {
		middle += of(s) / float64(n)
	}
	for _, s := range r.Samples[len(r.Samples)-n:] {
		last += of(s) / float64(n)
	}
	return middle, last
}

func (r *report) write(out string, summary io.Writer) error {
	_, _ = fmt.Fprintf(summary, "seed %d: %d clusters, %d kills (slowest start %.1f s), actions %v\n", r.Seed, r.Clusters, r.Kills, r.SlowestStart, r.Actions)
	_, _ = fmt.Fprintf(summary, "moved away and back: %d (%d refused while something failed); an extension lied: %v\n", r.Moved, r.Refused, r.Lies)
	_, _ = fmt.Fprintf(summary, "objects at the end: %v\n", r.Objects)
	_, _ = fmt.Fprintf(summary, "manager after work: %d goroutines, %d files, %.0f MB; fresh: %d, %d, %.0f MB\n",
		r.Old.Goroutines, r.Old.Files, r.Old.MB, r.Fresh.Goroutines, r.Fresh.Files, r.Fresh.MB)
	err := program.Write(out, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", " ")
		return e.Encode(r)
	})
	if err != nil {
		return err
	}
	return program.Write(program.Beside(out, ".svg"), r.draw().WriteSVG)
}

func (r *report) draw() chart.Chart {
	manager, server := chart.Line{Name: "manager"}, chart.Line{Name: "API server"}
	for _, s := range r.Samples {
		manager.Points = append(manager.Points, chart.Point{At: s.After, Value: s.ManagerMB})
		server.Points = append(server.Points, chart.Point{At: s.After, Value: s.ServerMB})
	}
	return chart.Chart{
		Title:  fmt.Sprintf("Soak of %d clusters, seed %d: the manager is killed %d times", r.Clusters, r.Seed, r.Kills),
		Panels: []chart.Panel{{Title: "resident memory, MB", Lines: []chart.Line{manager, server}}},
	}
}

package soak

import (
	"errors"
	"fmt"
	"io"

	"github.com/slipwayhq/slipway/test/bench/harness"
)

type report struct {
	Seed         uint64         `json:"seed"`
	Clusters     int            `json:"clusters"`
	Kills        int            `json:"kills"`
	SlowestStart float64        `json:"slowest_start_seconds"` // of the manager after a kill
	Actions      map[string]int `json:"actions"`
	Moved        int            `json:"moved"`   // to the other management cluster and back
	Refused      int            `json:"refused"` // moves, because of a fault
	Lies         map[string]int `json:"lies"`    // invalid responses of the extension
	Objects      map[string]int `json:"objects"` // at the end, by kind
	Old          held           `json:"manager_after_work"`
	Fresh        held           `json:"manager_fresh"`
	Samples      []sample       `json:"samples"`
}

// held are the resources of an idle manager.
type held struct {
	Goroutines int     `json:"goroutines"`
	Files      int     `json:"files"`
	MB         float64 `json:"memory_mb"`
}

type sample struct {
	After     float64 `json:"after_seconds"`
	ManagerMB float64 `json:"manager_mb"`
	ServerMB  float64 `json:"apiserver_mb"`
}

// checkLeaks tolerates 40 goroutines and files, for idle connections and pools, and a quarter of the memory.
func (r *report) checkLeaks() error {
	const tolerance, growth = 40, 1.25
	var problems []error
	if r.Old.Goroutines > r.Fresh.Goroutines+tolerance {
		problems = append(problems, fmt.Errorf("goroutines leak: %d after work, %d in a fresh manager", r.Old.Goroutines, r.Fresh.Goroutines))
	}
	if r.Old.Files > r.Fresh.Files+tolerance {
		problems = append(problems, fmt.Errorf("files leak: %d after work, %d in a fresh manager", r.Old.Files, r.Fresh.Files))
	}
	for i, name := range []string{"API server's", "manager's"} {
		middle, last := r.thirds(func(s sample) float64 { return []float64{s.ServerMB, s.ManagerMB}[i] })
		if last > middle*growth {
			problems = append(problems, fmt.Errorf("the %s memory grows: %.0f MB on average in the middle third, %.0f MB in the last", name, middle, last))
		}
	}
	return errors.Join(problems...)
}

// thirds are the averages over the middle and the last third of the samples.
func (r *report) thirds(value func(sample) float64) (middle, last float64) {
	n := len(r.Samples) / 3
	for i := range n {
		middle += value(r.Samples[n+i]) / float64(n)
		last += value(r.Samples[len(r.Samples)-n+i]) / float64(n)
	}
	return middle, last
}

func (r *report) write(out string, summary io.Writer) error {
	_, _ = fmt.Fprintf(summary, "seed %d: %d clusters, %d kills (slowest start %.1f s), actions %v\n", r.Seed, r.Clusters, r.Kills, r.SlowestStart, r.Actions)
	_, _ = fmt.Fprintf(summary, "moved away and back: %d (%d refused because of a fault); invalid responses of the extension: %v\n", r.Moved, r.Refused, r.Lies)
	_, _ = fmt.Fprintf(summary, "objects at the end: %v\n", r.Objects)
	_, _ = fmt.Fprintf(summary, "manager after work: %d goroutines, %d files, %.0f MB; fresh: %d, %d, %.0f MB\n",
		r.Old.Goroutines, r.Old.Files, r.Old.MB, r.Fresh.Goroutines, r.Fresh.Files, r.Fresh.MB)
	if err := harness.WriteFile(out, func(w io.Writer) error { return harness.WriteJSON(w, r) }); err != nil {
		return err
	}
	manager, server := harness.Line{Name: "manager"}, harness.Line{Name: "API server"}
	for _, s := range r.Samples {
		manager.Add(s.After, s.ManagerMB)
		server.Add(s.After, s.ServerMB)
	}
	return harness.WriteFile(harness.Sibling(out, ".svg"), harness.Chart{
		Title:  fmt.Sprintf("Soak of %d clusters, seed %d: the manager is killed %d times", r.Clusters, r.Seed, r.Kills),
		Panels: []harness.Panel{{Title: "resident memory, MB", Lines: []harness.Line{manager, server}}},
	}.WriteSVG)
}

package machine

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// pieces is how often each core does the work in one batch, and batches how many of them there are.
	pieces  = 100
	batches = 7
)

// Pace is how long this machine takes for a piece of work that is always the same, done by all cores at once. A core that is
// shared with others can be half as fast an hour later: who compares processor times of two runs compares their paces first.
func Pace() (time.Duration, error) {
	took := make([]time.Duration, 0, batches)
	for range batches {
		began := time.Now()
		var cores errgroup.Group
		for range runtime.NumCPU() {
			cores.Go(func() error { return work(pieces) })
		}
		if err := cores.Wait(); err != nil {
			return 0, fmt.Errorf("measure the pace of the machine: %w", err)
		}
		took = append(took, time.Since(began)/pieces)
	}
	slices.Sort(took)
	return took[batches/2], nil
}

// work reads and writes a document of 7 kB so often: what API servers and controllers do most.
func work(often int) error {
	type entry struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
		Count  int               `json:"count"`
	}
	document := make([]entry, 64)
	for i := range document {
		document[i] = entry{fmt.Sprintf("entry-%02d", i), map[string]string{"app": "slipway", "tier": "bench", "zone": "here", "of": "a-document"}, i}
	}
	for range often {
		text, err := json.Marshal(document)
		if err != nil {
			return err
		}
		var back any
		if err := json.Unmarshal(text, &back); err != nil {
			return err
		}
	}
	return nil
}

package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/slipwayhq/slipway/test/bench/result"
)

// journal notes when things happen, each the first time only.
type journal struct {
	began time.Time
	mu    sync.Mutex
	steps []result.Step
}

// note notes that something is so by now.
func (j *journal) note(step string) { j.noteAt(step, time.Now()) }

func (j *journal) noteAt(step string, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.ContainsFunc(j.steps, func(s result.Step) bool { return s.Name == step }) {
		j.steps = append(j.steps, result.Step{Name: step, After: at.Sub(j.began)})
	}
}

// inOrder are the steps in the order of time.
func (j *journal) inOrder() []result.Step {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.SortedStableFunc(slices.Values(j.steps), func(a, b result.Step) int { return int(a.After - b.After) })
}

// after is when a step was noted.
func (j *journal) after(step string) (time.Duration, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.steps {
		if s.Name == step {
			return s.After, nil
		}
	}
	return 0, fmt.Errorf("step %q did not happen", step)
}

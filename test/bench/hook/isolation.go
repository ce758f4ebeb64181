package main

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/slipwayhq/slipway/test/bench/latency"
	"github.com/slipwayhq/slipway/test/bench/result"
)

const (
	// every is the time between two calls of one extension; retry that between two of the one that hangs.
	every = 20 * time.Millisecond
	retry = 100 * time.Millisecond
	// rounds of three phases: all are well, the tenth hangs, all are well again.
	rounds = 12
)

// isolation compares nine extensions when the tenth is well with when it hangs. Other work on the machine comes and goes,
// and one burst of it is the slowest hundredth of everything: so each round is compared with itself, and what is reported
// are medians over the rounds. How far two phases of one round differ when nothing differs is reported too.
func (b *bench) isolation(ctx context.Context) ([]result.Figure, error) {
	var well, hanging, ratios, noise []float64 // p99, ms
	var times, during []time.Duration
	for range rounds {
		var p99 [3]float64
		for phase := range p99 {
			shut := phase == 1
			b.gate.set(shut)
			took, err := b.load(ctx, b.phase)
			if err != nil {
				return nil, err
			}
			p99[phase] = ms(latency.Quantile(took, 0.99))
			if shut {
				during = append(during, took...)
			} else {
				times = append(times, took...)
			}
		}
		first, last := p99[0], p99[2]
		well, hanging = append(well, first, last), append(hanging, p99[1])
		ratios = append(ratios, p99[1]/((first+last)/2))
		noise = append(noise, max(first, last)/min(first, last))
	}
	median := func(values []float64) float64 { return result.Figure{}.Median(values).Value }
	return []result.Figure{
		{Name: "hook.isolation.p50", Title: "nine extensions, all are well, p50 (ms)", Value: ms(latency.Quantile(times, 0.5))},
		{Name: "hook.isolation.p99", Title: "nine extensions, all are well, p99 (ms)", Value: median(well)},
		{Name: "hook.isolation.p50.hanging", Title: "nine extensions, the tenth hangs, p50 (ms)",
			Value: ms(latency.Quantile(during, 0.5))},
		{Name: "hook.isolation.p99.hanging", Title: "nine extensions, the tenth hangs, p99 (ms)", Value: median(hanging)},
		result.Figure{Name: "hook.isolation.ratio", Title: "p99 while the tenth hangs, of p99 just before and after"}.
			Median(ratios).AtMost(1.1),
		result.Figure{Name: "hook.isolation.noise", Title: "p99 before and after, the larger of the smaller"}.Median(noise),
	}, nil
}

// load calls nine extensions at a steady rate, and the tenth as a controller would that tries again. It returns how long
// the calls of the nine took.
func (b *bench) load(ctx context.Context, d time.Duration) ([]time.Duration, error) {
	var wg sync.WaitGroup
	took, failures := make([][]time.Duration, extensions-1), make([]error, extensions-1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	until := time.Now().Add(d)
	for range 4 {
		wg.Go(func() {
			for time.Now().Before(until) {
				_ = b.call(ctx, extensions-1)
				time.Sleep(retry)
			}
		})
	}
	var healthy sync.WaitGroup
	for i := range took {
		healthy.Go(func() {
			time.Sleep(time.Duration(rand.Int64N(int64(every))))
			for time.Now().Before(until) && failures[i] == nil {
				began := time.Now()
				failures[i] = b.call(ctx, i)
				took[i] = append(took[i], time.Since(began))
				time.Sleep(every - min(every, time.Since(began)))
			}
		})
	}
	healthy.Wait()
	cancel() // whoever still waits for the tenth
	wg.Wait()
	var all []time.Duration
	for i := range took {
		if failures[i] != nil {
			return nil, failures[i]
		}
		all = append(all, took[i]...)
	}
	return all, nil
}

// growth watches goroutines and memory while the tenth extension hangs.
func (b *bench) growth(ctx context.Context) ([]result.Figure, error) {
	b.gate.set(true)
	step := min(b.length/2, 10*time.Second)
	if _, err := b.load(ctx, step); err != nil {
		return nil, err
	}
	goroutines, heap := rest()
	for end := time.Now().Add(b.length - step); time.Now().Before(end); {
		if _, err := b.load(ctx, step); err != nil {
			return nil, err
		}
	}
	after, heapAfter := rest()
	return []result.Figure{
		{Name: "hook.growth.time", Title: "time with one extension that hangs (s)", Value: b.length.Seconds()},
		result.Figure{Name: "hook.growth.goroutines", Title: "goroutines more than after the first seconds",
			Value: float64(after - goroutines)}.AtMost(5),
		result.Figure{Name: "hook.growth.heap", Title: "memory more than after the first seconds (KiB)",
			Value: float64(heapAfter-heap) / 1024}.AtMost(1024),
	}, nil
}

// rest returns the goroutines and the bytes in use when nothing is going on.
func rest() (goroutines int, heap int64) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine(), int64(m.HeapAlloc)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/bench/latency"
	"github.com/slipwayhq/slipway/test/bench/pair"
	"github.com/slipwayhq/slipway/test/bench/settle"
)

// recovery is how long the sick clusters get to recover before a phase in which all are to be well.
const recovery = 3 * time.Second

// phase is one measurement.
type phase struct {
	sickness string
	round    int
	// before: it is the comparison for this sickness in the same round. Empty for the sickness itself.
	before string
	took   []time.Duration
	// reconciles of the Machine controller, those of the sick clusters included.
	reconciles latency.Histogram
}

// measure makes the fleet and measures it: for each sickness in turn a phase without and one with it, round by round, so
// that all see the same machine.
func measure(ctx context.Context, f *fleet) (phases []phase, err error) {
	f.say("starting a management cluster and a manager …")
	if f.pair, err = pair.Start(ctx, f.binary); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.pair.Stop()) }()
	if f.client, err = client.New(f.pair.Config, client.Options{}); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the watches
	if phases, err = f.turns(ctx); err != nil {
		return nil, fmt.Errorf("%w\nthe manager's log ends so:\n%s", err, f.pair.Log(30))
	}
	return phases, nil
}

func (f *fleet) turns(ctx context.Context) ([]phase, error) {
	f.say("creating %d clusters, %d of them with %d workers …", f.clusters, f.sick, f.workers)
	if err := f.comeUp(ctx); err != nil {
		return nil, err
	}
	probes, err := f.probes(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := f.load(ctx, probes); err != nil { // to warm up
		return nil, err
	}
	var out []phase
	for round := range f.rounds {
		for _, s := range sicknesses() {
			if err := settle.Pause(ctx, recovery); err != nil {
				return nil, err
			}
			healthy, err := f.observe(ctx, probes)
			if err != nil {
				return nil, err
			}
			healthy.sickness, healthy.before, healthy.round = well().name, s.name, round
			if err := f.infect(ctx, s); err != nil {
				return nil, err
			}
			sick, err := f.observe(ctx, probes)
			if err != nil {
				return nil, err
			}
			sick.sickness, sick.round = s.name, round
			if err := f.infect(ctx, well()); err != nil {
				return nil, err
			}
			f.say("round %d of %d, %s: p99 %.1f ms, without %.1f ms", round+1, f.rounds, s.title,
				milliseconds(latency.Quantile(sick.took, 0.99)), milliseconds(latency.Quantile(healthy.took, 0.99)))
			out = append(out, healthy, sick)
		}
	}
	return out, nil
}

// observe measures one phase.
func (f *fleet) observe(ctx context.Context, probes []*probe) (phase, error) {
	before, err := f.reconciles(ctx)
	if err != nil {
		return phase{}, err
	}
	took, err := f.load(ctx, probes)
	if err != nil {
		return phase{}, err
	}
	after, err := f.reconciles(ctx)
	return phase{took: took, reconciles: latency.Since(after, before)["machine"]}, err
}

func (f *fleet) reconciles(ctx context.Context) (map[string]latency.Histogram, error) {
	text, err := f.pair.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	return latency.Parse(strings.NewReader(text))
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/bench/host"
	"github.com/slipwayhq/slipway/test/bench/pair"
)

// recovery is how long the sick clusters get to recover before a phase in which all are to be well: time enough for whoever was
// told to come back later.
const recovery = 10 * time.Second

// phase is one measurement.
type phase struct {
	sickness string
	round    int
	// before: it is the comparison for this sickness in the same round. Empty for the sickness itself.
	before string
	took   []lapse
	// stolen is which part of the processors' time the host gave to others meanwhile.
	stolen float64
}

// well reports whether it is a phase without a sickness.
func (p phase) well() bool { return p.before != "" }

// findings are what was measured: in each round two phases for each sickness.
type findings struct {
	phases []phase
	// again is how many comparisons were made once more because of what the host took, the last of which counts.
	again int
	// held is how long that took, and to wait for the host.
	held time.Duration
}

// measure makes the fleet and measures it: for each sickness in turn a phase without and one with it, round by round, so
// that all see the same machine.
func measure(ctx context.Context, f *fleet) (found findings, err error) {
	f.say("starting a management cluster and a manager …")
	if f.pair, err = pair.Start(ctx, f.binary); err != nil {
		return findings{}, err
	}
	defer func() { err = errors.Join(err, f.pair.Stop()) }()
	if f.client, err = client.New(f.pair.Config, client.Options{}); err != nil {
		return findings{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the watches
	if found, err = f.turns(ctx); err != nil {
		return findings{}, fmt.Errorf("%w\nthe manager's log ends so:\n%s", err, f.pair.Log(30))
	}
	return found, nil
}

func (f *fleet) turns(ctx context.Context) (findings, error) {
	f.say("creating %d clusters, %d of them with %d workers …", f.clusters, f.sick, f.workers)
	if err := f.comeUp(ctx); err != nil {
		return findings{}, err
	}
	probes, err := f.probes(ctx)
	if err != nil {
		return findings{}, err
	}
	if _, err := f.load(ctx, probes); err != nil { // to warm up
		return findings{}, err
	}
	var found findings
	h := host.New(f.patience, f.say)
	for round := range f.rounds {
		for _, s := range sicknesses() {
			healthy, sick, err := f.undisturbed(ctx, probes, s, h)
			if err != nil {
				return findings{}, err
			}
			healthy.round, sick.round = round, round
			f.say("round %d of %d, %s: p99 %.1f ms, without %.1f ms", round+1, f.rounds, s.title,
				milliseconds(p99([]phase{sick}, whole)), milliseconds(p99([]phase{healthy}, whole)))
			found.phases = append(found.phases, healthy, sick)
		}
	}
	found.again, found.held = h.Again, h.Held
	return found, nil
}

// undisturbed makes a comparison, and makes it again because of what the host took, as long as there is patience.
func (f *fleet) undisturbed(ctx context.Context, probes []*probe, s sickness, h *host.Host) (healthy, sick phase, err error) {
	for {
		if err := h.Quiet(ctx, recovery); err != nil {
			return phase{}, phase{}, err
		}
		if healthy, err = f.observe(ctx, probes, h); err != nil {
			return phase{}, phase{}, err
		}
		if h.Spoiled(healthy.stolen, recovery+f.phase) {
			continue
		}
		if err := f.infect(ctx, s); err != nil {
			return phase{}, phase{}, err
		}
		if sick, err = f.observe(ctx, probes, h); err != nil {
			return phase{}, phase{}, err
		}
		if err := f.infect(ctx, well()); err != nil {
			return phase{}, phase{}, err
		}
		if h.Spoiled(sick.stolen, recovery+2*f.phase) {
			continue
		}
		healthy.sickness, healthy.before, sick.sickness = well().name, s.name, s.name
		return healthy, sick, nil
	}
}

// observe measures one phase.
func (f *fleet) observe(ctx context.Context, probes []*probe, h *host.Host) (phase, error) {
	var took []lapse
	stolen, err := h.During(func() (err error) {
		took, err = f.load(ctx, probes)
		return err
	})
	return phase{took: took, stolen: stolen}, err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/bench/pair"
	"github.com/slipwayhq/slipway/test/bench/procfs"
	"github.com/slipwayhq/slipway/test/bench/settle"
)

const (
	// recovery is how long the sick clusters get to recover before a phase in which all are to be well.
	recovery = 3 * time.Second
	// mostStolen is which part of the processors' time the host may give to others during a phase that counts. The p99 of a
	// phase is its third slowest change, so a single stall decides it: this is 75 ms of each processor, in a phase of 15 s.
	mostStolen = 0.005
	// lull is how long to wait for the host before a comparison is made again.
	lull = 30 * time.Second
)

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

// findings are what was measured: in each round two phases for each sickness.
type findings struct {
	phases []phase
	// again is how many comparisons were made once more because of mostStolen, the last of which counts.
	again int
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
	limit := f.rounds * len(sicknesses())
	for round := range f.rounds {
		for _, s := range sicknesses() {
			healthy, sick, again, err := f.undisturbed(ctx, probes, s, limit-found.again)
			if err != nil {
				return findings{}, err
			}
			found.again += again
			healthy.round, sick.round = round, round
			f.say("round %d of %d, %s: p99 %.1f ms, without %.1f ms", round+1, f.rounds, s.title,
				milliseconds(p99([]phase{sick}, whole)), milliseconds(p99([]phase{healthy}, whole)))
			found.phases = append(found.phases, healthy, sick)
		}
	}
	return found, nil
}

// undisturbed makes a comparison, and makes it again because of mostStolen, but not more often than limit.
func (f *fleet) undisturbed(ctx context.Context, probes []*probe, s sickness, limit int) (healthy, sick phase, again int, err error) {
	for ; ; again++ {
		last := again == limit
		healthy, sick, err = f.compare(ctx, probes, s, last)
		stolen := max(healthy.stolen, sick.stolen)
		if err != nil || last || stolen <= mostStolen {
			return healthy, sick, again, err
		}
		f.say("the host took %.2f %% of the processors' time while %s: again in %v", 100*stolen, s.title, lull)
		if err := settle.Pause(ctx, lull); err != nil {
			return phase{}, phase{}, again, err
		}
	}
}

// compare measures a phase in which all clusters are well and one with a sickness, after which all are well again. Unless it
// is the last, it ends when the first phase already says that it has to be made again.
func (f *fleet) compare(ctx context.Context, probes []*probe, s sickness, last bool) (healthy, sick phase, err error) {
	if err := settle.Pause(ctx, recovery); err != nil {
		return phase{}, phase{}, err
	}
	if healthy, err = f.observe(ctx, probes); err != nil {
		return phase{}, phase{}, err
	}
	healthy.sickness, healthy.before = well().name, s.name
	if !last && healthy.stolen > mostStolen {
		return healthy, phase{}, nil
	}
	if err := f.infect(ctx, s); err != nil {
		return phase{}, phase{}, err
	}
	if sick, err = f.observe(ctx, probes); err != nil {
		return phase{}, phase{}, err
	}
	sick.sickness = s.name
	return healthy, sick, f.infect(ctx, well())
}

// observe measures one phase.
func (f *fleet) observe(ctx context.Context, probes []*probe) (phase, error) {
	began, err := procfs.ReadCPU(os.DirFS("/proc"))
	if err != nil {
		return phase{}, err
	}
	took, err := f.load(ctx, probes)
	if err != nil {
		return phase{}, err
	}
	ended, err := procfs.ReadCPU(os.DirFS("/proc"))
	return phase{took: took, stolen: ended.StolenSince(began)}, err
}

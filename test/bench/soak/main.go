package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/slipwayhq/slipway/test/bench/program"
)

func main() { program.Main(parseOptions, run) }

type options struct {
	binary, manifest, out string
	clusters              int
	length, kill          time.Duration
	seed                  uint64
}

func parseOptions(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("soak", flag.ContinueOnError)
	f.StringVar(&o.binary, "slipway", "", "the binary to run (default: $SLIPWAY_BIN, else one that is built)")
	f.StringVar(&o.manifest, "manifest", filepath.Join("examples", "fleet.yaml"), "one simulated cluster with a MachineDeployment")
	f.StringVar(&o.out, "out", filepath.Join("dist", "bench", "soak.json"), "JSON file to write; a .svg is written beside it")
	f.IntVar(&o.clusters, "clusters", 20, "how many clusters there are")
	f.DurationVar(&o.length, "time", 30*time.Minute, "how long to go on")
	f.DurationVar(&o.kill, "kill", time.Minute, "how often the manager is killed; 0: never. In the last fifth of the time it is left alone")
	f.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "decides what happens in which order; default: the time")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 || o.clusters < 1 || o.length < time.Second || o.kill < 0 {
		return o, errors.New("want no arguments, at least one cluster and at least 1s")
	}
	var err error
	o.binary, err = program.Binary(o.binary)
	return o, err
}

func run(ctx context.Context, o options) error {
	s, err := newSoak(ctx, o)
	if err != nil {
		return err
	}
	defer func() { _ = s.stop() }()
	err = s.live(ctx)
	if err != nil {
		err = fmt.Errorf("%w\nseed %d; the manager's log ends so:\n%s", err, o.seed, s.pair.Log(30))
	}
	return errors.Join(err, s.report.write(o.out, os.Stdout))
}

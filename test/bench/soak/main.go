package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/slipwayhq/slipway/internal/testkit/apiserver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		stop()
		os.Exit(1)
	}
}

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
	if o.binary == "" {
		o.binary, err = apiserver.Binary()
	} else {
		o.binary, err = filepath.Abs(o.binary)
	}
	return o, err
}

func run(ctx context.Context, args []string) error {
	o, err := parseOptions(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	s, err := newSoak(ctx, o)
	if err != nil {
		return err
	}
	defer func() { _ = s.pair.Stop() }()
	err = s.live(ctx)
	if err != nil {
		err = fmt.Errorf("%w\nseed %d; the manager's log ends so:\n%s", err, o.seed, s.pair.Log(30))
	}
	return errors.Join(err, s.report.write(o.out, os.Stdout))
}

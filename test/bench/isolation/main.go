package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"time"

	"github.com/slipwayhq/slipway/test/bench/machine"
	"github.com/slipwayhq/slipway/test/bench/program"
	"github.com/slipwayhq/slipway/test/bench/template"
)

func main() { program.Main(parseOptions, run) }

type options struct {
	binary   string // absolute
	out      string
	manifest string
	clusters int
	sick     int // of the clusters
	workers  int // of each sick cluster
	rounds   int
	phase    time.Duration
	every    time.Duration
	patience time.Duration
}

func parseOptions(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("isolation", flag.ContinueOnError)
	f.StringVar(&o.binary, "slipway", "", "the binary to measure (default: $SLIPWAY_BIN, else one that is built)")
	f.StringVar(&o.out, "out", filepath.Join("dist", "bench", "isolation.json"), "JSON file to write; a .svg, and a .csv of each change, are written beside it")
	f.StringVar(&o.manifest, "manifest", filepath.Join("examples", "fleet.yaml"), "one simulated cluster with a MachineDeployment of one worker")
	f.IntVar(&o.clusters, "clusters", 20, "how many clusters there are, the sick ones included")
	f.IntVar(&o.sick, "sick", 3, "how many of them become sick")
	f.IntVar(&o.workers, "workers", 10, "how many workers each of those has")
	f.IntVar(&o.rounds, "rounds", 16, "how often each fault is compared with none")
	f.DurationVar(&o.phase, "phase", 15*time.Second, "how long each phase is measured")
	f.DurationVar(&o.every, "every", time.Second, "time between two changes in a cluster")
	f.DurationVar(&o.patience, "patience", time.Hour,
		"for how long, in all, to wait while the host gives the processors to others, and to measure again what that spoiled")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case f.NArg() > 0:
		return o, errors.New("want no arguments")
	case o.sick < 1 || o.sick >= o.clusters || o.workers < 1 || o.rounds < 2:
		return o, errors.New("want a sick cluster, one that is well, a worker, and two rounds at least")
	case o.patience < 0:
		return o, errors.New("want a patience of 0 or more")
	case o.phase < time.Second || o.every < 10*time.Millisecond || o.every > o.phase:
		return o, errors.New("want phases of at least 1s, and a change in each, every 10ms at most")
	}
	var err error
	o.binary, err = program.Binary(o.binary)
	return o, err
}

func run(ctx context.Context, o options) error {
	t, err := template.Read(o.manifest)
	if err != nil {
		return err
	}
	host, err := machine.Describe(ctx, o.binary)
	if err != nil {
		return err
	}
	found, err := measure(ctx, &fleet{options: o, template: t})
	if err != nil {
		return err
	}
	if err := machine.Finish(&host); err != nil {
		return err
	}
	return write(found, host, outputs{
		json: o.out, changes: program.Beside(o.out, ".csv"), drawing: program.Beside(o.out, ".svg"), table: os.Stdout,
	})
}

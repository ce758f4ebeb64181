package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipwayhq/slipway/test/bench/machine"
	"github.com/slipwayhq/slipway/test/bench/program"
	"github.com/slipwayhq/slipway/test/bench/result"
)

func main() { program.Main(parseOptions, run) }

type options struct {
	binary, reference, out string
	// clusters are moved; saved are in the backup; machines has the one that is described.
	clusters, saved, machines int
}

func parseOptions(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("verbs", flag.ContinueOnError)
	f.StringVar(&o.binary, "slipway", filepath.Join("bin", "slipway"), "the binary to measure")
	f.StringVar(&o.reference, "reference", "", "the reference's clusterctl, which moves the same Clusters back; empty: it is not measured")
	f.IntVar(&o.clusters, "clusters", 100, "Clusters with 5 Machines to move")
	f.IntVar(&o.saved, "backup", 1000, "Clusters to save")
	f.IntVar(&o.machines, "machines", 1000, "Machines of the Cluster to describe")
	f.StringVar(&o.out, "out", filepath.Join("dist", "bench", "verbs.json"), "JSON file to write")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 || o.clusters < 1 || o.saved < 1 || o.machines < 1 {
		return o, errors.New("want no arguments, and at least one of everything")
	}
	var err error
	o.binary, err = program.Binary(o.binary)
	return o, err
}

func run(ctx context.Context, o options) error {
	var report result.Report
	var err error
	if report.Machine, err = machine.Describe(ctx, o.binary); err != nil {
		return err
	}
	b := bench{options: o, say: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }}
	if report.Figures, err = b.measure(ctx); err != nil {
		return err
	}
	if err := machine.Finish(&report.Machine); err != nil {
		return err
	}
	if err := report.WriteTable(os.Stdout); err != nil {
		return err
	}
	return program.Write(o.out, report.WriteJSON)
}

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
	"github.com/slipwayhq/slipway/test/bench/result"
)

func main() { program.Main(parseOptions, run) }

type options struct {
	serve  int
	phase  time.Duration
	length time.Duration
	out    string
	binary string
}

func parseOptions(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("hook", flag.ContinueOnError)
	f.IntVar(&o.serve, "serve", 0, "serve so many extensions until standard input closes; what this program starts itself with")
	f.StringVar(&o.binary, "slipway", filepath.Join("bin", "slipway"), "the binary whose version is noted")
	f.DurationVar(&o.phase, "phase", 5*time.Second, "how long each part is measured")
	f.DurationVar(&o.length, "time", 10*time.Minute, "how long goroutines and memory are watched")
	f.StringVar(&o.out, "out", filepath.Join("dist", "bench", "hook.json"), "JSON file to write")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.serve == 0 && (f.NArg() > 0 || o.phase < time.Second || o.length < time.Second) {
		return o, errors.New("want no arguments, and times of at least 1s")
	}
	return o, nil
}

func run(ctx context.Context, o options) error {
	if o.serve > 0 {
		return serve(o.serve)
	}
	var report result.Report
	var err error
	if report.Machine, err = machine.Describe(ctx, o.binary); err != nil {
		return err
	}
	if report.Figures, err = measure(ctx, o); err != nil {
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

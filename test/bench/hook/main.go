package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/slipwayhq/slipway/test/bench/machine"
	"github.com/slipwayhq/slipway/test/bench/result"
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
	serve  int
	phase  time.Duration
	length time.Duration
	out    string
	binary string
}

func run(ctx context.Context, args []string) error {
	var o options
	f := flag.NewFlagSet("hook", flag.ContinueOnError)
	f.IntVar(&o.serve, "serve", 0, "serve so many extensions until standard input closes; what this program starts itself with")
	f.StringVar(&o.binary, "slipway", filepath.Join("bin", "slipway"), "the binary whose version is noted")
	f.DurationVar(&o.phase, "phase", 5*time.Second, "how long each part is measured")
	f.DurationVar(&o.length, "time", 10*time.Minute, "how long goroutines and memory are watched")
	f.StringVar(&o.out, "out", filepath.Join("dist", "bench", "hook.json"), "JSON file to write")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if o.serve > 0 {
		return serve(o.serve)
	}
	if f.NArg() > 0 || o.phase < time.Second || o.length < time.Second {
		return errors.New("want no arguments, and times of at least 1s")
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
	data, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return err
	}
	return os.WriteFile(o.out, append(data, '\n'), 0o644)
}

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/test/bench/program"
)

func main() { program.Main(parseOptions, run) }

type options struct {
	binary, out string
	workers     int
}

// flushed is how long the manager may keep spans before it sends them.
const flushed = 10 * time.Second

func parseOptions(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("timeline", flag.ContinueOnError)
	f.StringVar(&o.binary, "slipway", filepath.Join("bin", "slipway"), "the binary to run; its node image has to be there")
	f.IntVar(&o.workers, "workers", 2, "nodes of the cluster")
	f.StringVar(&o.out, "out", filepath.Join("dist", "bench", "timeline.svg"), "SVG file to write")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 || o.workers < 1 {
		return o, errors.New("want no arguments, and at least one worker")
	}
	var err error
	o.binary, err = program.Binary(o.binary)
	return o, err
}

func run(ctx context.Context, o options) (err error) {
	r, err := newReceiver(ctx)
	if err != nil {
		return err
	}
	defer r.server.Stop()
	folder, err := os.MkdirTemp("", "slipway-timeline-")
	if err != nil {
		return err
	}
	data := filepath.Join(folder, "data")
	slipway := func(ctx context.Context, args ...string) error {
		cmd := exec.CommandContext(ctx, o.binary, args...)
		cmd.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_ENDPOINT="+r.endpoint, "OTEL_BSP_SCHEDULE_DELAY=500")
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("slipway %s: %w: %s", strings.Join(args, " "), err, &said)
		}
		return nil
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if end := slipway(ctx, "down", "--delete", "--data-dir", data); end != nil {
			err = errors.Join(err, end)
			return
		}
		err = errors.Join(err, os.RemoveAll(folder))
	}()
	if err := slipway(ctx, "up", "-d", "--data-dir", data, "--listen", "127.0.0.1:0"); err != nil {
		return err
	}
	began := time.Now()
	if err := slipway(ctx, "create", "cluster", "timeline", "--workers", strconv.Itoa(o.workers), "--kubeconfig", filepath.Join(data, "kubeconfig")); err != nil {
		return err
	}
	took := time.Since(began)
	rows, err := r.complete(ctx, began, o.workers)
	if err != nil {
		return err
	}
	title := fmt.Sprintf("A cluster with %d real nodes: all there after %.1f s", o.workers, took.Seconds())
	fmt.Println(title)
	for _, row := range rows {
		for _, b := range row.bars {
			if b.class > 0 {
				fmt.Printf("  %s  %-16s %5.1f s to %5.1f s\n", row.name, b.text, b.from, b.to)
			}
		}
	}
	return program.Write(o.out, func(w io.Writer) error { return draw(w, title, rows) })
}

// complete returns the rows when each Machine has told of its way, or the manager has had time enough to send that.
func (r *receiver) complete(ctx context.Context, began time.Time, workers int) ([]row, error) {
	ctx, cancel := context.WithTimeout(ctx, flushed)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		rows, machines := rowsOf(r.received(began), began), 0
		for _, row := range rows {
			if len(row.bars) > 0 && row.bars[0].class > 0 {
				machines++
			}
		}
		if machines >= workers {
			return rows, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d Machines have sent a trace within %s", machines, workers, flushed)
		}
	}
}

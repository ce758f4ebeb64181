package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/test/bench/machine"
	"github.com/slipwayhq/slipway/test/bench/program"
	"github.com/slipwayhq/slipway/test/bench/result"
)

// groups are the names that -only takes.
const (
	groupUp         = "up"
	groupMemory     = "memory"
	groupIdle       = "idle"
	groupQuickstart = "quickstart"
	groupScale      = "scale"
	groupClass      = "class"
	groupKubeadm    = "kubeadm"
	groupFunctions  = "functions"
)

func groups() []string {
	return []string{groupUp, groupMemory, groupIdle, groupQuickstart, groupScale, groupClass, groupKubeadm, groupFunctions}
}

func main() { program.Main(parseOptions, run) }

type options struct {
	binary   string // absolute
	out      string
	manifest string
	class    string
	kubeadm  string
	only     []string
	runs     int
	idle     time.Duration
}

// wants reports whether any of the groups is to be measured.
func (o options) wants(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(o.only, n) })
}

func parseOptions(args []string) (options, error) {
	var o options
	var only string
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&o.binary, "slipway", "", "the binary to measure (default: $SLIPWAY_BIN, else one that is built)")
	f.StringVar(&o.out, "out", filepath.Join("dist", "bench", "launch.json"), "JSON file to write; .svg and .csv are written beside it")
	f.StringVar(&only, "only", strings.Join(groups(), ","), "what to measure")
	f.StringVar(&o.manifest, "manifest", filepath.Join("examples", "without-class.yaml"), "cluster with one pool to measure with")
	f.StringVar(&o.class, "class", filepath.Join("examples", "quickstart.yaml"), "the same cluster of a ClusterClass")
	f.StringVar(&o.kubeadm, "kubeadm", filepath.Join("examples", "kubeadm.yaml"), "a cluster with one control plane Machine and one worker")
	f.IntVar(&o.runs, "runs", 3, "how often to start a management cluster, and to create a cluster of a class or of kubeadm")
	f.DurationVar(&o.idle, "idle", time.Minute, "how long to watch an idle management cluster")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.only = strings.Split(only, ",")
	for _, name := range o.only {
		if !slices.Contains(groups(), name) {
			return o, fmt.Errorf("-only %s: there is no such measurement; there are %s", name, strings.Join(groups(), ", "))
		}
	}
	if f.NArg() > 0 || o.runs < 1 || o.idle < time.Second {
		return o, errors.New("want no arguments, at least one run and at least 1s of idling")
	}
	var err error
	o.binary, err = program.Binary(o.binary)
	return o, err
}

func run(ctx context.Context, o options) error {
	b := &bench{options: o, log: os.Stderr}
	var err error
	if b.report.Machine, err = machine.Describe(ctx, b.binary); err != nil {
		return err
	}
	b.measure(ctx)
	if err := machine.Finish(&b.report.Machine); err != nil {
		return err
	}
	if err := b.report.WriteTable(os.Stdout); err != nil {
		return err
	}
	if err := b.write(); err != nil {
		return err
	}
	if len(b.report.Unmeasured) > 0 {
		return fmt.Errorf("%d of the measurements failed", len(b.report.Unmeasured))
	}
	return nil
}

// bench is one run of this program.
type bench struct {
	options
	log     io.Writer // says what is going on
	report  result.Report
	samples []usage // of the quickstart
	began   time.Time
}

func (b *bench) say(format string, args ...any) { _, _ = fmt.Fprintf(b.log, format+"\n", args...) }

func (b *bench) found(f ...result.Figure) { b.report.Figures = append(b.report.Figures, f...) }

// measure goes on with the next group when one fails.
func (b *bench) measure(ctx context.Context) {
	try := func(wanted bool, what string, group func(context.Context) error) {
		if !wanted {
			return
		}
		if err := group(ctx); err != nil {
			b.report.Unmeasured = append(b.report.Unmeasured, fmt.Sprintf("%s: %v", what, err))
		}
	}
	try(b.wants(groupUp), "up", b.measureUp)
	try(b.wants(groupMemory, groupIdle, groupQuickstart, groupScale), "management cluster", b.measureCluster)
	try(b.wants(groupClass), "cluster of a class", b.measureClass)
	try(b.wants(groupKubeadm), "cluster of kubeadm", b.measureKubeadm)
	try(b.wants(groupFunctions), "functions", b.measureFunctions)
}

// write writes the files.
func (b *bench) write() error {
	files := map[string]func(io.Writer) error{b.out: b.report.WriteJSON}
	if len(b.samples) > 0 {
		files[program.Beside(b.out, ".svg")] = draw(b.began, b.samples, b.report.Steps).WriteSVG
		files[program.Beside(b.out, ".csv")] = func(w io.Writer) error { return list(w, b.began, b.samples) }
	}
	var errs []error
	for name, content := range files {
		errs = append(errs, program.Write(name, content))
	}
	return errors.Join(errs...)
}

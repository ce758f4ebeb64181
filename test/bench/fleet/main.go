package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/test/bench/host"
	"github.com/slipwayhq/slipway/test/bench/machine"
	"github.com/slipwayhq/slipway/test/bench/program"
	"github.com/slipwayhq/slipway/test/bench/template"
)

func main() { program.Main(parseOptions, run) }

type options struct {
	binary   string // absolute
	out      string
	manifest string
	profiles string // folder; empty: none
	version  string // empty: no upgrade
	sizes    []int
	workers  int
	changes  bool
	idle     time.Duration
	patience time.Duration
}

func parseOptions(args []string) (options, error) {
	var o options
	var sizes string
	f := flag.NewFlagSet("fleet", flag.ContinueOnError)
	f.StringVar(&o.binary, "slipway", "", "the binary to measure (default: $SLIPWAY_BIN, else one that is built)")
	f.StringVar(&sizes, "clusters", "1,10,100,300,1000", "numbers of clusters, each measured on an installation of its own")
	f.StringVar(&o.out, "out", filepath.Join("dist", "bench", "fleet.json"), "JSON file to write: one object for one number, else all; a .svg is written beside it for several")
	f.StringVar(&o.manifest, "manifest", filepath.Join("examples", "fleet.yaml"), "one cluster with a MachineDeployment of one worker; its name is replaced wherever it stands")
	f.IntVar(&o.workers, "workers", 200, "how many workers the MachineDeployment is scaled to; 0: do not scale")
	f.BoolVar(&o.changes, "changes", true, "change the class of the clusters, where they have one: a label, then a template")
	f.StringVar(&o.version, "upgrade", "", "version that all clusters of a class are upgraded to at once; empty: none")
	f.DurationVar(&o.idle, "idle", 2*time.Minute, "how long to watch the clusters idle; 0: not at all")
	f.DurationVar(&o.patience, "patience", 30*time.Minute, "for how long, in all, to wait before a measurement while the host gives the processors to others")
	f.StringVar(&o.profiles, "profiles", "", "folder to write profiles (pprof) of both processes to; what is measured meanwhile is dearer")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	for _, text := range strings.Split(sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return o, fmt.Errorf("-clusters %s: want numbers above zero, separated by commas", sizes)
		}
		o.sizes = append(o.sizes, n)
	}
	if f.NArg() > 0 || o.workers < 0 || o.idle < 0 || o.patience < 0 {
		return o, errors.New("want no arguments, and no negative number of workers or time")
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
	if o.profiles != "" {
		if err := os.MkdirAll(o.profiles, 0o755); err != nil {
			return err
		}
	}
	r := report{OfClass: t.OfClass, OnMachines: t.OnMachines}
	if r.Machine, err = machine.Describe(ctx, o.binary); err != nil {
		return err
	}
	f := &fleet{options: o, template: t, log: os.Stderr}
	f.host = host.New(o.patience, f.say)
	for _, n := range o.sizes {
		f.size = n
		m, err := f.measure(ctx)
		if err != nil {
			return errors.Join(fmt.Errorf("%d clusters: %w", n, err), r.write(o.out, os.Stdout))
		}
		r.Sizes = append(r.Sizes, m)
	}
	if err := machine.Finish(&r.Machine); err != nil {
		return err
	}
	return r.write(o.out, os.Stdout)
}

// say says what is going on.
func (f *fleet) say(format string, args ...any) {
	_, _ = fmt.Fprintf(f.log, "%4d clusters: %s\n", f.size, fmt.Sprintf(format, args...))
}

// fleet is one number of clusters to be measured.
type fleet struct {
	options
	template template.Template
	size     int
	host     *host.Host
	log      io.Writer
}

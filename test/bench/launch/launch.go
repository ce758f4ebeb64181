// Package launch measures management clusters of `slipway up` with real nodes: their start, their resource use and the
// quickstart (launch), the stages of the creation of nodes (timeline), and the commands of clusterctl (verbs).
package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/test/bench/harness"
)

// Groups of measurements, for --only.
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

func allGroups() []string {
	return []string{groupUp, groupMemory, groupIdle, groupQuickstart, groupScale, groupClass, groupKubeadm, groupFunctions}
}

type benchmark struct {
	harness.Options
	manifest, class, kubeadm string
	only                     []string
	runs                     int
	idle                     time.Duration

	start   time.Time // of the quickstart
	samples []usage   // during the quickstart
}

func Command() *cobra.Command { return (&benchmark{}).command() }

func (b *benchmark) command() *cobra.Command {
	cmd := b.Command("launch", "measure a management cluster, the quickstart with real nodes, and Go functions", "launch.json", b.run)
	f := cmd.Flags()
	f.StringSliceVar(&b.only, "only", allGroups(), "groups to measure")
	f.StringVar(&b.manifest, "manifest", filepath.Join("examples", "without-class.yaml"), "cluster with one pool")
	f.StringVar(&b.class, "class", filepath.Join("examples", "quickstart.yaml"), "the same cluster with a ClusterClass")
	f.StringVar(&b.kubeadm, "kubeadm", filepath.Join("examples", "kubeadm.yaml"), "cluster with one control plane Machine and one worker")
	f.IntVar(&b.runs, "runs", 3, "number of starts, and of clusters with a class or a kubeadm control plane")
	f.DurationVar(&b.idle, "idle", time.Minute, "duration of the measurement of an idle management cluster")
	harness.AtLeast(f, "runs", &b.runs, 1)
	harness.AtLeast(f, "idle", &b.idle, time.Second)
	return cmd
}

func (b *benchmark) wants(groups ...string) bool {
	return slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(b.only, g) })
}

func (b *benchmark) run(ctx context.Context) error {
	for _, name := range b.only {
		if !slices.Contains(allGroups(), name) {
			return fmt.Errorf("--only %s: the groups are %s", name, strings.Join(allGroups(), ", "))
		}
	}
	if err := b.RunReport(ctx, b.measure); err != nil {
		return err
	}
	if len(b.samples) > 0 {
		svg := harness.WriteFile(harness.Sibling(b.Out, ".svg"), usageChart(b.start, b.samples, b.Report.Steps).WriteSVG)
		if err := errors.Join(svg, harness.WriteCSV(harness.Sibling(b.Out, ".csv"), usageRows(b.start, b.samples))); err != nil {
			return err
		}
	}
	if n := len(b.Report.Unmeasured); n > 0 {
		return fmt.Errorf("%d of the measurements failed", n)
	}
	return nil
}

// group is a measurement with a title for errors and the groups of --only that need it.
type group struct {
	title   string
	measure func(context.Context) error
	names   []string
}

// measure runs all groups, also after one has failed.
func (b *benchmark) measure(ctx context.Context) error {
	for _, g := range []group{
		{"up", b.measureUp, []string{groupUp}},
		{"management cluster", b.measureCluster, []string{groupMemory, groupIdle, groupQuickstart, groupScale}},
		{"cluster of a class", b.measureClass, []string{groupClass}},
		{"cluster of kubeadm", b.measureKubeadm, []string{groupKubeadm}},
		{"functions", b.measureFunctions, []string{groupFunctions}},
	} {
		if err := b.runGroup(ctx, g); err != nil {
			b.Report.Unmeasured = append(b.Report.Unmeasured, err.Error())
		}
	}
	return nil
}

func (b *benchmark) runGroup(ctx context.Context, g group) error {
	if !b.wants(g.names...) {
		return nil
	}
	if err := g.measure(ctx); err != nil {
		return fmt.Errorf("%s: %w", g.title, err)
	}
	return nil
}

// measureUp starts management clusters, each with an empty data directory and then with the same data.
func (b *benchmark) measureUp(ctx context.Context) error {
	var first, again []float64
	for n := range b.runs {
		b.Logf("starting a management cluster, %d of %d …", n+1, b.runs)
		err := harness.WithInstallation(ctx, b.Binary, func(in *harness.Installation) error {
			start := func(times *[]float64) func(context.Context) error {
				return func(ctx context.Context) error {
					seconds, err := in.Start(ctx)
					*times = append(*times, seconds)
					return err
				}
			}
			return harness.InOrder(ctx, start(&first), in.Down, start(&again))
		})
		if err != nil {
			return err
		}
	}
	binary, err := os.Stat(b.Binary)
	if err != nil {
		return err
	}
	b.Add(
		harness.NewMedian("up.first", "up -d until ready, on a bare data directory", first, harness.Seconds).AtMost(6),
		harness.NewMedian("up.again", "up -d until ready, on the same again", again, harness.Seconds).AtMost(4),
		harness.NewFigure("up.binary", "size of the binary", float64(binary.Size())/1e6, harness.Megabytes),
	)
	return nil
}

// management is a running management cluster.
type management struct {
	*benchmark
	in     *harness.Installation
	config *rest.Config
	probe  probe
}

// withManagement calls measure with a management cluster, which is removed afterwards.
func (b *benchmark) withManagement(ctx context.Context, measure func(*management) error) error {
	return harness.WithInstallation(ctx, b.Binary, func(in *harness.Installation) error {
		b.Logf("starting a management cluster …")
		config, err := in.Up(ctx)
		if err != nil {
			return err
		}
		pid, err := in.PID(ctx)
		if err != nil {
			return err
		}
		p, err := newProbe("/proc", pid)
		if err != nil {
			return err
		}
		return measure(&management{benchmark: b, in: in, config: config, probe: p})
	})
}

// measureCluster measures one management cluster: without clusters, during the quickstart, with it, and while it scales.
func (b *benchmark) measureCluster(ctx context.Context) error {
	manifest, err := harness.ReadManifest(b.manifest)
	if err != nil {
		return err
	}
	return b.withManagement(ctx, func(m *management) error {
		c := &cluster{management: m, Manifest: manifest, file: b.manifest}
		idle := []string{groupMemory, groupIdle}
		for _, g := range []group{
			{"idle", func(ctx context.Context) error { return m.measureIdle(ctx, "empty", "without clusters") }, idle},
			{"quickstart", c.measureQuickstart, allGroups()},
			{"idle with a cluster", func(ctx context.Context) error { return m.measureIdle(ctx, "cluster", "with the quickstart") }, idle},
			{"scale", c.measureScale, []string{groupScale}},
		} {
			if err := b.runGroup(ctx, g); err != nil {
				return err
			}
		}
		return nil
	})
}

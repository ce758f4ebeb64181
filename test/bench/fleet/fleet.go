// Package fleet measures fleets of simulated clusters: the cost of each cluster (fleet), and the effect of clusters with a
// failing API on the others (isolation).
package fleet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/test/bench/harness"
)

// quietPeriod is the time without stolen processor time before a measurement.
const quietPeriod = 10 * time.Second

type benchmark struct {
	harness.Options
	manifest, profiles, version string
	sizes                       []int
	workers                     int
	changes                     bool
	idle, patience              time.Duration
}

func Command() *cobra.Command { return (&benchmark{}).command() }

func (b *benchmark) command() *cobra.Command {
	cmd := b.Command("fleet", "measure the cost of simulated clusters, for several numbers of clusters", "fleet.json", b.run)
	f := cmd.Flags()
	f.IntSliceVar(&b.sizes, "clusters", []int{1, 10, 100, 300, 1000}, "numbers of clusters; each starts a new management cluster. The output for one number is a JSON object, and for several also an .svg")
	f.StringVar(&b.manifest, "manifest", filepath.Join("examples", "fleet.yaml"), "cluster with a MachineDeployment of one worker; its name is replaced everywhere")
	f.IntVar(&b.workers, "workers", 200, "replicas to which a MachineDeployment is scaled; 0: not scaled")
	f.BoolVar(&b.changes, "changes", true, "change a label and a template of the ClusterClass, if there is one")
	f.StringVar(&b.version, "upgrade", "", "version to which all clusters of a class are upgraded at once; empty: no upgrade")
	f.DurationVar(&b.idle, "idle", 2*time.Minute, "duration of the measurement of idle clusters; 0: none")
	f.DurationVar(&b.patience, "patience", 30*time.Minute, "total time to wait while the host takes processor time")
	f.StringVar(&b.profiles, "profiles", "", "folder for pprof profiles of both processes, which increase the cost")
	return cmd
}

func (b *benchmark) run(ctx context.Context) {
	if len(b.sizes) == 0 || slices.Min(b.sizes) < 1 {
		harness.Failf("--clusters must be above zero")
	}
	manifest := harness.ReadTemplate(b.manifest)
	if b.version != "" && !manifest.OfClass {
		harness.Failf("--upgrade needs clusters of a class")
	}
	if b.profiles != "" {
		harness.Check(os.MkdirAll(b.profiles, 0o755))
	}
	r := report{OfClass: manifest.OfClass, OnMachines: manifest.OnMachines}
	r.Machine = harness.DescribeMachine(ctx, b.Binary)
	err := harness.Try(func() {
		host := harness.NewHost(b.patience, b.Logf)
		for _, n := range b.sizes {
			s := &fleetRun{benchmark: b, size: n, host: host, result: measurement{Clusters: n}}
			s.Manifest = manifest
			harness.Checkf(harness.Try(func() { s.measure(ctx) }), "%d clusters", n)
			r.Sizes = append(r.Sizes, s.result)
		}
		r.Machine.Finish()
	})
	r.write(b.Out)
	harness.Check(err)
}

// fleetRun is the measurement of one number of clusters.
type fleetRun struct {
	*benchmark
	harness.Fleet
	env    *harness.Environment
	size   int
	host   *harness.Host
	result measurement
}

func (r *fleetRun) logf(format string, args ...any) {
	r.Logf("%4d clusters: %s", r.size, fmt.Sprintf(format, args...))
}

func (r *fleetRun) measure(ctx context.Context) {
	r.host.WaitQuiet(ctx, quietPeriod)
	r.result.PaceBefore = harness.Pace()
	r.logf("starting a management cluster and a manager …")
	var flags []string
	if r.OfClass {
		flags = append(flags, "--feature-gates=ClusterTopology=true")
	}
	r.env = harness.StartEnvironment(ctx, r.Binary, flags...)
	func() {
		defer harness.Close(r.env.Stop)
		r.Fleet = harness.NewFleet(r.Manifest, r.env.Config)
		r.env.WithLog(func() { r.measureSteps(ctx) })
	}()
	r.result.PaceAfter = harness.Pace()
}

func (r *fleetRun) measureSteps(ctx context.Context) {
	for _, step := range []struct {
		do    func(context.Context)
		peaks *Peaks
	}{
		{r.create, &r.result.Peaks}, {r.rest, &r.result.Peaks}, {r.changeClass, &r.result.Growing}, {r.upgrade, &r.result.Growing},
		{r.scale, &r.result.Growing}, {r.remove, &r.result.Peaks},
	} {
		bounded, cancel := context.WithTimeout(ctx, r.timeout(10*time.Minute))
		defer cancel()
		harness.Sampling(ctx, 250*time.Millisecond, func() { step.peaks.add(r.env.Usage()) }, func() { step.do(bounded) })
	}
}

// timeout grows with the number of clusters.
func (r *fleetRun) timeout(d time.Duration) time.Duration {
	return d + time.Duration(r.size)*3*time.Second
}

// reading is everything that was used until a time.
type reading struct {
	at         time.Time
	usage      harness.Usage
	requests   harness.RequestCounts
	reconciles harness.Reconciliations
	cpu        harness.CPUTime
}

func (r *fleetRun) read(ctx context.Context) reading {
	return reading{
		at: time.Now(), usage: r.env.Usage(), reconciles: r.env.Reconciliations(ctx), cpu: harness.ReadHostTime(),
		requests: harness.CountRequests(ctx, r.Config),
	}
}

// readStart does not include the cost of the reading itself.
func (r *fleetRun) readStart(ctx context.Context) reading {
	m := r.read(ctx)
	m.at, m.usage = time.Now(), r.env.Usage()
	return m
}

// observe reads before do, and after do when the API server has settled. settled is the time of the last write.
func (r *fleetRun) observe(ctx context.Context, do func()) (from, to reading, settled time.Time) {
	from = r.readStart(ctx)
	do()
	settled = r.settle(ctx)
	return from, r.read(ctx), settled
}

// settle waits until there are no writes. The first request count is late, because each takes processor time.
func (r *fleetRun) settle(ctx context.Context) time.Time {
	harness.Sleep(ctx, 2*time.Second)
	_, last := harness.WaitSettled(ctx, r.Config, harness.QuietPeriod, r.timeout(5*time.Minute))
	return last
}

// create creates all clusters and waits until they are Available. Shared objects are created before and not counted.
func (r *fleetRun) create(ctx context.Context) {
	r.CreateShared(ctx)
	r.settle(ctx)
	r.logf("creating them …")
	from, to, _ := r.observe(ctx, func() {
		start := time.Now()
		r.profile(ctx, "up", func() {
			harness.Together(ctx,
				func(ctx context.Context) { r.CreateAll(ctx, r.size, func(int) int { return 1 }) },
				func(ctx context.Context) { r.Objects("clusters").UntilEach(ctx, r.size, harness.IsAvailable) })
			r.result.WallSeconds = time.Since(start).Seconds()
			r.logf("all Available after %.1f s; waiting until they have settled …", r.result.WallSeconds)
		})
	})
	r.result.addCreation(from, to)
}

// profile writes profiles of both processes while do runs, if there is a folder for them.
func (r *fleetRun) profile(ctx context.Context, during string, do func()) {
	if r.profiles == "" {
		do()
		return
	}
	write := func(ctx context.Context, name, profile string) {
		r.env.WriteProfiles(ctx, profile, filepath.Join(r.profiles, fmt.Sprintf("%s-%%s-%s-%d.pprof", name, during, r.size)))
	}
	harness.Together(ctx, func(ctx context.Context) { write(ctx, "cpu", "profile?seconds=10") }, func(context.Context) { do() })
	write(ctx, "heap", "heap")
}

// rest measures idle clusters. It waits before, because the garbage collector discovers new kinds after 30 s and then reads
// every owner that it has seen, for up to 41 s.
func (r *fleetRun) rest(ctx context.Context) {
	if r.idle == 0 {
		return
	}
	r.logf("left alone for %v, then idle for %v …", time.Minute, r.idle)
	harness.Sleep(ctx, time.Minute)
	r.host.WaitQuiet(ctx, quietPeriod)
	from := r.readStart(ctx)
	r.profile(ctx, "idle", func() { harness.Sleep(ctx, r.idle) })
	r.result.addIdle(from, r.read(ctx))
}

// firstScale is the number of workers in the published figures of the reference implementation.
const firstScale = 50

// scale scales a MachineDeployment of the first cluster up and back, so that all clusters have the same size afterwards.
func (r *fleetRun) scale(ctx context.Context) {
	last := 1
	for _, to := range []int{min(firstScale, r.workers), r.workers} {
		if to > last {
			r.result.Growth, last = append(r.result.Growth, r.scaleTo(ctx, last, to)), to
		}
	}
	if last > 1 {
		r.result.ShrinkSeconds = r.scaleTo(ctx, last, 1).Seconds
	}
}

func (r *fleetRun) scaleTo(ctx context.Context, before, after int) growth {
	r.host.WaitQuiet(ctx, quietPeriod)
	r.logf("scaling a MachineDeployment from %d to %d workers …", before, after)
	g := growth{From: before, To: after}
	from, to, _ := r.observe(ctx, func() {
		start := time.Now()
		o, path := r.CoreObject("MachineDeployment", r.WorkersName(0)), "/spec/replicas"
		if r.OfClass {
			o, path = r.CoreObject("Cluster", harness.ClusterName(0)), "/spec/topology/workers/machineDeployments/0/replicas"
		}
		harness.SetField(ctx, r.Client, o, path, after)
		r.profile(ctx, fmt.Sprintf("to-%d", after), func() {
			r.waitWorkers(ctx, after)
			g.Seconds = time.Since(start).Seconds()
		})
	})
	g.addCost(from, to)
	return g
}

// waitWorkers waits until the first cluster has exactly this number of workers and all are Running.
func (r *fleetRun) waitWorkers(ctx context.Context, count int) {
	running, total := 0, 0
	err := harness.Try(func() {
		r.Objects("machines").Until(ctx, func(all []*unstructured.Unstructured) bool {
			running, total = 0, 0
			for _, m := range all {
				if m.GetLabels()["cluster.x-k8s.io/deployment-name"] == r.WorkersName(0) {
					total++
					if harness.IsRunning(m) == "" {
						running++
					}
				}
			}
			return running == count && total == count
		})
	})
	harness.Checkf(err, "scale to %d workers: %d of %d are Running", count, running, total)
}

// remove deletes all clusters and waits until nothing is left.
func (r *fleetRun) remove(ctx context.Context) {
	r.logf("deleting all …")
	var start, gone time.Time
	from, to, settled := r.observe(ctx, func() {
		start = time.Now()
		harness.InParallel(ctx, r.size, 8, func(ctx context.Context, n int) {
			name := harness.ClusterName(n)
			harness.Checkf(r.Client.Delete(ctx, r.CoreObject("Cluster", name)), "delete Cluster %s", name)
		})
		for _, plural := range []string{"clusters", "machines"} {
			r.Objects(plural).UntilEach(ctx, 0, harness.IsAvailable)
		}
		gone = time.Now()
	})
	r.result.DeletionSeconds, r.result.LeftSeconds = gone.Sub(start).Seconds(), max(0, settled.Sub(gone).Seconds())
	r.result.Deletion = newClusterCost(from, to, r.size)
}

// Package fleet measures fleets of simulated clusters: the cost of each cluster (fleet), and the effect of clusters with a
// failing API on the others (isolation).
package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/procfs"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	harness.AtLeast(f, "workers", &b.workers, 0)
	harness.AtLeast(f, "idle", &b.idle, 0)
	harness.AtLeast(f, "patience", &b.patience, 0)
	return cmd
}

func (b *benchmark) run(ctx context.Context) error {
	if len(b.sizes) == 0 || slices.Min(b.sizes) < 1 {
		return errors.New("--clusters must be above zero")
	}
	manifest, err := harness.ReadTemplate(b.manifest)
	if err != nil {
		return err
	}
	if b.version != "" && !manifest.OfClass {
		return errors.New("--upgrade needs clusters of a class")
	}
	if b.profiles != "" {
		if err := os.MkdirAll(b.profiles, 0o755); err != nil {
			return err
		}
	}
	r := report{OfClass: manifest.OfClass, OnMachines: manifest.OnMachines}
	if r.Machine, err = harness.DescribeMachine(ctx, b.Binary); err != nil {
		return err
	}
	host := harness.NewHost(b.patience, b.Logf)
	for _, n := range b.sizes {
		s := &fleetRun{benchmark: b, size: n, host: host, result: measurement{Clusters: n}}
		s.Manifest = manifest
		if err := s.measure(ctx); err != nil {
			return errors.Join(fmt.Errorf("%d clusters: %w", n, err), r.write(b.Out, os.Stdout))
		}
		r.Sizes = append(r.Sizes, s.result)
	}
	if err := r.Machine.Finish(); err != nil {
		return err
	}
	return r.write(b.Out, os.Stdout)
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

func (r *fleetRun) measure(ctx context.Context) (err error) {
	if err := r.host.WaitQuiet(ctx, quietPeriod); err != nil {
		return err
	}
	if r.result.PaceBefore, err = harness.Pace(); err != nil {
		return err
	}
	r.logf("starting a management cluster and a manager …")
	var flags []string
	if r.OfClass {
		flags = append(flags, "--feature-gates=ClusterTopology=true")
	}
	if r.env, err = harness.StartEnvironment(ctx, r.Binary, flags...); err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, r.env.Stop()); err == nil {
			r.result.PaceAfter, err = harness.Pace()
		}
	}()
	if r.Fleet, err = harness.NewFleet(r.Manifest, r.env.Config); err != nil {
		return err
	}
	for _, step := range []struct {
		do    func(context.Context) error
		peaks *Peaks
	}{
		{r.create, &r.result.Peaks}, {r.rest, &r.result.Peaks}, {r.changeClass, &r.result.Growing}, {r.upgrade, &r.result.Growing},
		{r.scale, &r.result.Growing}, {r.remove, &r.result.Peaks},
	} {
		stop := harness.Sample(ctx, 250*time.Millisecond, func() error {
			u, err := r.env.Usage()
			step.peaks.add(u)
			return err
		})
		bounded, cancel := context.WithTimeout(ctx, r.timeout(10*time.Minute))
		err := step.do(bounded)
		cancel()
		if err := errors.Join(err, stop()); err != nil {
			return r.env.WithLog(err)
		}
	}
	return nil
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

func (r *fleetRun) read(ctx context.Context) (reading, error) {
	m := reading{at: time.Now()}
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return m, err
	}
	if m.usage, err = r.env.Usage(); err != nil {
		return m, err
	}
	if m.reconciles, err = r.env.Reconciliations(ctx); err != nil {
		return m, err
	}
	if m.cpu, err = harness.ReadCPUTime(proc); err != nil {
		return m, err
	}
	m.requests, err = harness.CountRequests(ctx, r.Config)
	return m, err
}

// readStart does not include the cost of the reading itself.
func (r *fleetRun) readStart(ctx context.Context) (reading, error) {
	m, err := r.read(ctx)
	if err == nil {
		m.at = time.Now()
		m.usage, err = r.env.Usage()
	}
	return m, err
}

// observe reads before do, and after do when the API server has settled. settled is the time of the last write.
func (r *fleetRun) observe(ctx context.Context, do func() error) (from, to reading, settled time.Time, err error) {
	if from, err = r.readStart(ctx); err != nil {
		return from, to, settled, err
	}
	if err := do(); err != nil {
		return from, to, settled, err
	}
	if settled, err = r.settle(ctx); err != nil {
		return from, to, settled, err
	}
	to, err = r.read(ctx)
	return from, to, settled, err
}

// settle waits until there are no writes. The first request count is late, because each takes processor time.
func (r *fleetRun) settle(ctx context.Context) (last time.Time, err error) {
	if err := harness.Sleep(ctx, 2*time.Second); err != nil {
		return last, err
	}
	_, last, err = harness.WaitSettled(ctx, r.Config, harness.QuietPeriod, r.timeout(5*time.Minute))
	return last, err
}

// create creates all clusters and waits until they are Available. Shared objects are created before and not counted.
func (r *fleetRun) create(ctx context.Context) error {
	if err := r.CreateShared(ctx); err != nil {
		return err
	}
	if _, err := r.settle(ctx); err != nil {
		return err
	}
	r.logf("creating them …")
	wait := r.profile(ctx, "up")
	from, to, _, err := r.observe(ctx, func() error {
		start := time.Now()
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return r.CreateAll(ctx, r.size, func(int) int { return 1 }) })
		group.Go(func() error { return r.Objects("clusters").UntilEach(ctx, r.size, harness.IsAvailable) })
		err := group.Wait()
		r.result.WallSeconds = time.Since(start).Seconds()
		r.logf("all Available after %.1f s; waiting until they have settled …", r.result.WallSeconds)
		return err
	})
	if err := errors.Join(err, wait()); err != nil {
		return err
	}
	r.result.addCreation(from, to)
	return nil
}

// profile writes profiles of both processes while something is measured, if there is a folder for them.
func (r *fleetRun) profile(ctx context.Context, during string) (wait func() error) {
	if r.profiles == "" {
		return func() error { return nil }
	}
	write := func(name, profile string) error {
		return r.env.WriteProfiles(ctx, profile, filepath.Join(r.profiles, fmt.Sprintf("%s-%%s-%s-%d.pprof", name, during, r.size)))
	}
	cpu := make(chan error, 1)
	go func() { cpu <- write("cpu", "profile?seconds=10") }()
	return func() error { return errors.Join(<-cpu, write("heap", "heap")) }
}

// rest measures idle clusters. It waits before, because the garbage collector discovers new kinds after 30 s and then reads
// every owner that it has seen, for up to 41 s.
func (r *fleetRun) rest(ctx context.Context) error {
	if r.idle == 0 {
		return nil
	}
	r.logf("left alone for %v, then idle for %v …", time.Minute, r.idle)
	if err := harness.Sleep(ctx, time.Minute); err != nil {
		return err
	}
	if err := r.host.WaitQuiet(ctx, quietPeriod); err != nil {
		return err
	}
	from, err := r.readStart(ctx)
	if err != nil {
		return err
	}
	wait := r.profile(ctx, "idle")
	if err := errors.Join(harness.Sleep(ctx, r.idle), wait()); err != nil {
		return err
	}
	to, err := r.read(ctx)
	if err != nil {
		return err
	}
	r.result.addIdle(from, to)
	return nil
}

// firstScale is the number of workers in the published figures of the reference implementation.
const firstScale = 50

// scale scales a MachineDeployment of the first cluster up and back, so that all clusters have the same size afterwards.
func (r *fleetRun) scale(ctx context.Context) error {
	last := 1
	for _, to := range []int{min(firstScale, r.workers), r.workers} {
		if to <= last {
			continue
		}
		g, err := r.scaleTo(ctx, last, to)
		if err != nil {
			return err
		}
		r.result.Growth, last = append(r.result.Growth, g), to
	}
	if last == 1 {
		return nil
	}
	g, err := r.scaleTo(ctx, last, 1)
	r.result.ShrinkSeconds = g.Seconds
	return err
}

func (r *fleetRun) scaleTo(ctx context.Context, before, after int) (growth, error) {
	if err := r.host.WaitQuiet(ctx, quietPeriod); err != nil {
		return growth{}, err
	}
	r.logf("scaling a MachineDeployment from %d to %d workers …", before, after)
	g := growth{From: before, To: after}
	wait := func() error { return nil }
	from, to, _, err := r.observe(ctx, func() error {
		start := time.Now()
		o, path := r.CoreObject("MachineDeployment", r.WorkersName(0)), "/spec/replicas"
		if r.OfClass {
			o, path = r.CoreObject("Cluster", harness.ClusterName(0)), "/spec/topology/workers/machineDeployments/0/replicas"
		}
		if err := harness.SetField(ctx, r.Client, o, path, after); err != nil {
			return err
		}
		wait = r.profile(ctx, fmt.Sprintf("to-%d", after))
		err := r.Objects("machines").Until(ctx, func(all []*unstructured.Unstructured) bool {
			running, total := 0, 0
			for _, m := range all {
				if m.GetLabels()["cluster.x-k8s.io/deployment-name"] == r.WorkersName(0) {
					total++
					if harness.IsRunning(m) == "" {
						running++
					}
				}
			}
			return running == after && total == after
		})
		g.Seconds = time.Since(start).Seconds()
		return err
	})
	if err := errors.Join(err, wait()); err != nil {
		return g, fmt.Errorf("scale from %d to %d workers: %w", before, after, err)
	}
	g.addCost(from, to)
	return g, nil
}

// remove deletes all clusters and waits until nothing is left.
func (r *fleetRun) remove(ctx context.Context) error {
	r.logf("deleting all …")
	var start, gone time.Time
	from, to, settled, err := r.observe(ctx, func() error {
		start = time.Now()
		err := harness.InParallel(ctx, r.size, 8, func(ctx context.Context, n int) error {
			c := r.CoreObject("Cluster", harness.ClusterName(n))
			return r.Client.Delete(ctx, c, &client.DeleteOptions{Preconditions: &metav1.Preconditions{}})
		})
		if err != nil {
			return fmt.Errorf("delete the clusters: %w", err)
		}
		for _, plural := range []string{"clusters", "machines"} {
			if err := r.Objects(plural).UntilEach(ctx, 0, harness.IsAvailable); err != nil {
				return err
			}
		}
		gone = time.Now()
		return nil
	})
	if err != nil {
		return err
	}
	r.result.DeletionSeconds, r.result.LeftSeconds = gone.Sub(start).Seconds(), max(0, settled.Sub(gone).Seconds())
	r.result.Deletion = newClusterCost(from, to, r.size)
	return nil
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/bench/follow"
	"github.com/slipwayhq/slipway/test/bench/latency"
	"github.com/slipwayhq/slipway/test/bench/machine"
	"github.com/slipwayhq/slipway/test/bench/pair"
	"github.com/slipwayhq/slipway/test/bench/procfs"
	"github.com/slipwayhq/slipway/test/bench/requests"
	"github.com/slipwayhq/slipway/test/bench/settle"
	"github.com/slipwayhq/slipway/test/bench/template"
)

// The deadlines only end a run that hangs; each is longer by perCluster for each cluster.
const (
	deadline     = 10 * time.Minute
	settleWithin = 5 * time.Minute
	perCluster   = 3 * time.Second
	// echo is for how long there are writes after the last one that was waited for.
	echo = 2 * time.Second
	// calm is how long an installation is left alone before it counts as idle. The garbage collector of one that has just begun
	// learns of new kinds after 30 s. It then asks for each owner that it had heard of before, up to 41 s after it heard of it.
	calm = time.Minute
	// moment is for how long the host has to leave the processors to this machine before something is measured.
	moment = 10 * time.Second
	// atOnce is how many clusters are created at the same time.
	atOnce = 8
)

// measure measures one fleet on an installation of its own.
func (f *fleet) measure(ctx context.Context) (m measurement, err error) {
	if err = f.host.Quiet(ctx, moment); err != nil {
		return m, err
	}
	if m.PaceBefore, err = machine.Pace(); err != nil {
		return m, err
	}
	f.say("starting a management cluster and a manager …")
	var flags []string
	if f.template.OfClass {
		flags = append(flags, "--feature-gates=ClusterTopology=true")
	}
	p, err := pair.Start(ctx, f.binary, flags...)
	if err != nil {
		return m, err
	}
	defer func() {
		if err = errors.Join(err, p.Stop()); err == nil {
			m.PaceAfter, err = machine.Pace()
		}
	}()
	c, err := client.New(p.Config, client.Options{})
	if err != nil {
		return m, err
	}
	s := &stage{fleet: f, pair: p, client: c, found: &m}
	m.Clusters = f.size
	for _, step := range []struct {
		do   func(context.Context) error
		peak *Peaks
	}{{s.comeUp, &m.Peaks}, {s.rest, &m.Peaks}, {s.changeClass, &m.Growing}, {s.upgradeAll, &m.Growing}, {s.scale, &m.Growing}, {s.remove, &m.Peaks}} {
		if err := watched(ctx, p, step.peak, step.do); err != nil {
			return m, fmt.Errorf("%w\nthe manager's log ends so:\n%s", err, p.Log(30))
		}
	}
	return m, nil
}

// watched does something, and notes the most memory meanwhile.
func watched(ctx context.Context, p *pair.Pair, most *Peaks, do func(context.Context) error) error {
	watch := watchPeaks(ctx, p, most)
	err := do(ctx)
	return errors.Join(err, watch.end())
}

// stage is a fleet on an installation.
type stage struct {
	*fleet
	pair   *pair.Pair
	client client.Client
	found  *measurement
}

func (s *stage) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.within(deadline))
}

// within is a deadline for this many clusters.
func (f *fleet) within(d time.Duration) time.Duration { return d + time.Duration(f.size)*perCluster }

// mark is what had been used and asked by a moment.
type mark struct {
	at      time.Time
	usage   pair.Usage
	asked   requests.Counts
	latency map[string]latency.Histogram
	cpu     procfs.CPU
}

func (s *stage) mark(ctx context.Context) (mark, error) {
	m := mark{at: time.Now()}
	var err error
	if m.usage, err = s.pair.Usage(); err != nil {
		return m, err
	}
	text, err := s.pair.Metrics(ctx)
	if err != nil {
		return m, err
	}
	if m.latency, err = latency.Parse(strings.NewReader(text)); err != nil {
		return m, err
	}
	if m.cpu, err = procfs.ReadCPU(os.DirFS("/proc")); err != nil {
		return m, err
	}
	m.asked, err = settle.Counts(ctx, s.pair.Config)
	return m, err
}

// begin is the mark at which something begins: what it costs to read the metrics is not part of that.
func (s *stage) begin(ctx context.Context) (mark, error) {
	m, err := s.mark(ctx)
	if err != nil {
		return m, err
	}
	m.at = time.Now()
	m.usage, err = s.pair.Usage()
	return m, err
}

// settle waits until nothing is written any more. What follows at once is over when it looks for the first time: each look at
// the API server's metrics takes some of the time that is measured. When the last write was is known within such a look.
func (s *stage) settle(ctx context.Context) (last time.Time, err error) {
	if err := settle.Pause(ctx, echo); err != nil {
		return last, err
	}
	_, last, err = settle.Wait(ctx, s.pair.Config, settle.Quiet, s.within(settleWithin))
	return last, err
}

// comeUp makes all clusters and waits until they are Available and nothing is written any more. What they share is made before, and is no
// part of what they cost.
func (s *stage) comeUp(ctx context.Context) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	shared, err := s.template.Shared()
	if err := errors.Join(err, template.Create(ctx, s.client, shared)); err != nil {
		return err
	}
	if _, err := s.settle(ctx); err != nil {
		return err
	}
	before, err := s.begin(ctx)
	if err != nil {
		return err
	}
	s.say("creating them …")
	profiled := s.profile(ctx, "up")
	all, following := errgroup.WithContext(ctx)
	all.Go(func() error { return s.create(following) })
	all.Go(func() error { return s.available(following) })
	if err := all.Wait(); err != nil {
		return err
	}
	s.found.WallSeconds = time.Since(before.at).Seconds()
	s.say("all Available after %.1f s; waiting until they have settled …", s.found.WallSeconds)
	if _, err := s.settle(ctx); err != nil {
		return err
	}
	after, err := s.mark(ctx)
	if err != nil {
		return errors.Join(err, profiled())
	}
	s.found.judgeComeUp(before, after)
	return profiled()
}

// create creates the objects of the clusters, several clusters at a time.
func (s *stage) create(ctx context.Context) error {
	one := func(n int) error {
		objects, err := s.template.Render(n)
		if err != nil {
			return err
		}
		return template.Create(ctx, s.client, objects)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for n := range s.size {
		group.Go(func() error { return one(n) })
	}
	return group.Wait()
}

func (s *stage) available(ctx context.Context) error {
	last, count := time.Now(), 0
	err := s.of(follow.Clusters().Resource).Until(ctx, func(all []*unstructured.Unstructured) bool {
		count = 0
		for _, c := range all {
			if follow.Holds(c, "Available") {
				count++
			}
		}
		if time.Since(last) > 10*time.Second {
			last = time.Now()
			s.say("%d Available", count)
		}
		return count == s.size
	})
	if err != nil {
		return fmt.Errorf("%d of %d clusters became Available: %w", count, s.size, err)
	}
	return nil
}

func (s *stage) of(plural string) follow.Objects {
	return follow.Objects{Config: s.pair.Config, Resource: follow.Core(plural), Namespace: s.template.Namespace}
}

// profile writes profiles of both processes while something goes on, if someone wants them.
func (s *stage) profile(ctx context.Context, during string) (wait func() error) {
	if s.profiles == "" {
		return func() error { return nil }
	}
	file := func(what string) string {
		return filepath.Join(s.profiles, fmt.Sprintf("%s-%s-%d.pprof", what, during, s.size))
	}
	const cpu = "profile?seconds=10"
	both, profiling := errgroup.WithContext(ctx)
	both.Go(func() error { return s.pair.Profile(profiling, cpu, file("cpu-manager")) })
	both.Go(func() error { return s.pair.ServerProfile(profiling, cpu, file("cpu-apiserver")) })
	return func() error {
		return errors.Join(both.Wait(), s.pair.Profile(ctx, "heap", file("heap-manager")), s.pair.ServerProfile(ctx, "heap", file("heap-apiserver")))
	}
}

// rest watches the clusters while nothing happens.
func (s *stage) rest(ctx context.Context) error {
	if s.idle == 0 {
		return nil
	}
	s.say("left alone for %v, then idle for %v …", calm, s.idle)
	if err := settle.Pause(ctx, calm); err != nil {
		return err
	}
	if err := s.host.Quiet(ctx, moment); err != nil {
		return err
	}
	before, err := s.begin(ctx)
	if err != nil {
		return err
	}
	profiled := s.profile(ctx, "idle")
	if err := errors.Join(settle.Pause(ctx, s.idle), profiled()); err != nil {
		return err
	}
	after, err := s.mark(ctx)
	if err != nil {
		return err
	}
	s.found.judgeIdle(before, after)
	return nil
}

// firstStep is the number of workers that the reference implementation was measured with.
const firstStep = 50

// scale makes a MachineDeployment of the first cluster larger, and as small as it was.
func (s *stage) scale(ctx context.Context) error {
	last := 1
	for _, to := range []int{min(firstStep, s.workers), s.workers} {
		if to <= last {
			continue
		}
		g, err := s.scaleTo(ctx, last, to)
		if err != nil {
			return fmt.Errorf("scale from %d to %d workers: %w", last, to, err)
		}
		s.found.Growth = append(s.found.Growth, g)
		last = to
	}
	if last == 1 {
		return nil
	}
	g, err := s.scaleTo(ctx, last, 1) // so that what is deleted at last are clusters of the same size
	if err != nil {
		return fmt.Errorf("scale from %d workers to one: %w", last, err)
	}
	s.found.ShrinkSeconds = g.Seconds
	return nil
}

func (s *stage) scaleTo(ctx context.Context, from, to int) (growth, error) {
	if err := s.host.Quiet(ctx, moment); err != nil {
		return growth{}, err
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	s.say("scaling a MachineDeployment from %d to %d workers …", from, to)
	before, err := s.begin(ctx)
	if err != nil {
		return growth{}, err
	}
	o, path := s.template.Object(follow.Kind("MachineDeployment"), s.template.Deployment(0)), "/spec/replicas"
	if s.template.OfClass { // what the topology says is what the MachineDeployment gets
		o, path = s.template.Object(follow.Kind("Cluster"), template.Cluster(0)), "/spec/topology/workers/machineDeployments/0/replicas"
	}
	patch, err := json.Marshal([]operation{{"replace", path, to}})
	if err != nil {
		return growth{}, err
	}
	if err := s.client.Patch(ctx, o, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return growth{}, err
	}
	label, profiled := s.template.Deployment(0), s.profile(ctx, fmt.Sprintf("to-%d", to))
	err = s.of("machines").Until(ctx, func(all []*unstructured.Unstructured) bool {
		running, others := 0, 0
		for _, m := range all {
			phase, _, _ := unstructured.NestedString(m.Object, "status", "phase")
			switch {
			case m.GetLabels()["cluster.x-k8s.io/deployment-name"] != label:
			case phase == "Running":
				running++
			default:
				others++
			}
		}
		return running == to && others == 0
	})
	if err != nil {
		return growth{}, err
	}
	took := time.Since(before.at)
	if _, err := s.settle(ctx); err != nil {
		return growth{}, err
	}
	after, err := s.mark(ctx)
	if err != nil {
		return growth{}, err
	}
	g := growth{From: from, To: to, Seconds: took.Seconds()}
	g.judge(before, after)
	return g, profiled()
}

// remove deletes all clusters and waits until nothing of them is left.
func (s *stage) remove(ctx context.Context) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	s.say("deleting all …")
	before, err := s.begin(ctx)
	if err != nil {
		return err
	}
	group, deleting := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for n := range s.size {
		group.Go(func() error {
			c := s.template.Object(follow.Kind("Cluster"), template.Cluster(n))
			return s.client.Delete(deleting, c, &client.DeleteOptions{Preconditions: &metav1.Preconditions{}})
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, plural := range []string{"clusters", "machines"} {
		left := 0
		err := s.of(plural).Until(ctx, func(all []*unstructured.Unstructured) bool { left = len(all); return left == 0 })
		if err != nil {
			return fmt.Errorf("%d %s are left: %w", left, plural, err)
		}
	}
	gone := time.Now()
	s.found.DeletionSeconds = gone.Sub(before.at).Seconds()
	last, err := s.settle(ctx)
	if err != nil {
		return err
	}
	s.found.LeftSeconds = max(0, last.Sub(gone).Seconds())
	after, err := s.mark(ctx)
	if err != nil {
		return err
	}
	s.found.judgeDeletion(before, after)
	return nil
}

package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/test/bench/harness"
)

// isolation changes a label of a Machine in each cluster at a constant rate and measures the time until the Node has the
// label. Phases without a fault alternate with phases in which some clusters have one; only the other clusters are measured.
type isolation struct {
	harness.Options
	harness.Fleet
	manifest                        string
	clusters, sick, workers, rounds int // the clusters with the lowest numbers are sick
	phase, every, patience          time.Duration

	probes []*probe
	host   *harness.Host
	phases phases
}

func IsolationCommand() *cobra.Command { return (&isolation{}).command() }

func (b *isolation) command() *cobra.Command {
	cmd := b.Command("isolation", "measure the effect of clusters with a failing API on the others", "isolation.json", b.run)
	f := cmd.Flags()
	f.StringVar(&b.manifest, "manifest", filepath.Join("examples", "fleet.yaml"), "simulated cluster with a MachineDeployment of one worker")
	f.IntVar(&b.clusters, "clusters", 20, "number of clusters, including the faulty ones")
	f.IntVar(&b.sick, "sick", 3, "clusters with a fault")
	f.IntVar(&b.workers, "workers", 10, "workers of each cluster with a fault")
	f.IntVar(&b.rounds, "rounds", 16, "comparisons for each fault")
	f.DurationVar(&b.phase, "phase", 15*time.Second, "duration of a phase")
	f.DurationVar(&b.every, "every", time.Second, "time between two changes in a cluster")
	f.DurationVar(&b.patience, "patience", time.Hour, "total time to wait while the host takes processor time, including repeated measurements")
	return cmd
}

func (b *isolation) run(ctx context.Context) {
	if b.sick < 1 || b.workers < 1 || b.rounds < 2 || b.phase < time.Second || b.every < 10*time.Millisecond {
		harness.Failf("--sick and --workers must be at least 1, --rounds 2, --phase 1s, and --every 10ms")
	}
	if b.sick >= b.clusters || b.every > b.phase {
		harness.Failf("--sick must be less than --clusters, and --every at most --phase")
	}
	b.Manifest = harness.ReadTemplate(b.manifest)
	b.RunReport(ctx, b.measure)
	harness.WriteFile(harness.Sibling(b.Out, ".svg"), b.phases.chart().SVG())
}

func (b *isolation) workersOf(n int) int {
	if n < b.sick {
		return b.workers
	}
	return 1
}

func (b *isolation) measure(ctx context.Context) {
	b.Logf("starting a management cluster and a manager …")
	env := harness.StartEnvironment(ctx, b.Binary)
	defer harness.Close(env.Stop)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the watches
	b.Fleet = harness.NewFleet(b.Manifest, env.Config)
	env.WithLog(func() {
		b.create(ctx)
		b.watch(ctx)
		b.load(ctx) // warms up
		b.compareAll(ctx)
	})
	b.Add(b.phases.figures(b.host)...)
}

// compareAll compares each fault in each round, so that all faults are measured under the same conditions.
func (b *isolation) compareAll(ctx context.Context) {
	for round := range b.rounds {
		for _, f := range faults() {
			healthy, sick := b.compare(ctx, f)
			healthy.round, sick.round = round, round
			b.Logf("round %d of %d, %s: p99 %.1f ms, without %.1f ms", round+1, b.rounds, f.title,
				harness.Milliseconds(phases{sick}.quantile(0.99)), harness.Milliseconds(phases{healthy}.quantile(0.99)))
			b.phases = append(b.phases, healthy, sick)
		}
	}
}

// create creates all clusters and waits until their Machines are Running and nothing is written.
func (b *isolation) create(ctx context.Context) {
	b.host = harness.NewHost(b.patience, b.Logf)
	b.Logf("creating %d clusters, %d of them with %d workers …", b.clusters, b.sick, b.workers)
	const timeout = 10 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	b.CreateAll(ctx, b.clusters, b.workersOf)
	b.Objects("machines").UntilEach(ctx, b.sick*b.workers+b.clusters-b.sick, harness.IsRunning)
	harness.WaitSettled(ctx, b.Config, harness.QuietPeriod, timeout)
}

// compare measures a phase without and a phase with a fault, and repeats them if the host took too much processor time.
func (b *isolation) compare(ctx context.Context, f fault) (healthy, sick phase) {
	const recovery = 10 * time.Second // includes the backoff of failed reconciliations
	for {
		b.host.WaitQuiet(ctx, recovery)
		healthy = b.observe(ctx)
		if b.host.MustRepeat(healthy.stolen, recovery+b.phase) {
			continue
		}
		b.set(ctx, f)
		sick = b.observe(ctx)
		b.set(ctx, noFault())
		if !b.host.MustRepeat(sick.stolen, recovery+2*b.phase) {
			healthy.fault, healthy.before, sick.fault = noFault().name, f.name, f.name
			return healthy, sick
		}
	}
}

func (b *isolation) observe(ctx context.Context) (p phase) {
	p.stolen = b.host.StolenDuring(func() { p.latencies = b.load(ctx) })
	return p
}

// fault is a fault of workload APIs.
type fault struct {
	name, title       string
	annotation, value string // of the HostedControlPlane
}

func noFault() fault { return fault{name: "well", title: "all are well"} }

func faults() []fault {
	return []fault{
		{"down", "some are down", hostedv1.APIDownAnnotation, "always"},
		{"slow", "some take a second to respond", hostedv1.APISlowAnnotation, "1s"},
		{"hanging", "some do not respond within any time limit", hostedv1.APISlowAnnotation, "10m"},
		{"failing", "some respond with status 500", hostedv1.APIErrorsAnnotation, "500"},
	}
}

// annotations replace all other faults.
func (f fault) annotations() map[string]any {
	all := map[string]any{hostedv1.APIDownAnnotation: nil, hostedv1.APISlowAnnotation: nil, hostedv1.APIErrorsAnnotation: nil}
	if f.annotation != "" {
		all[f.annotation] = f.value
	}
	return all
}

// set sets a fault and waits until it has an effect.
func (b *isolation) set(ctx context.Context, f fault) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for n := range b.sick {
		plane := b.Object(hostedv1.GroupVersion.WithKind("HostedControlPlane"), harness.ClusterName(n))
		harness.SetMetadata(ctx, b.Client, plane, "annotations", f.annotations())
	}
	for n := range b.sick {
		c := harness.Must(discovery.NewDiscoveryClientForConfig(b.Workload(ctx, harness.ClusterName(n))))
		for isHealthy(ctx, c) == (f.annotation != "") {
			harness.Checkf(harness.Wait(ctx, 100*time.Millisecond), "wait until cluster %s is in the state %q", harness.ClusterName(n), f.name)
		}
	}
}

// isHealthy reports whether an API server is ready and responds quickly.
func isHealthy(ctx context.Context, c discovery.DiscoveryInterface) bool {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	return c.RESTClient().Get().AbsPath("/readyz").MaxRetries(0).Do(ctx).Error() == nil
}

// changeLabel is copied from a Machine to its Node. Its value is the number of the change.
const changeLabel = "isolation.node.cluster.x-k8s.io/change"

// probe changes the Machines of a cluster in turns.
type probe struct {
	cluster  int
	machines []string
	measured bool // the cluster never has a fault

	mu        sync.Mutex
	changes   int
	pending   map[int]time.Time // start of the changes that have not arrived on the Node, by number
	latencies []time.Duration
}

func newProbe(cluster int, measured bool) *probe {
	return &probe{cluster: cluster, measured: measured, pending: map[int]time.Time{}}
}

// begin returns the number of a new change.
func (p *probe) begin(now time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changes++
	if p.measured {
		p.pending[p.changes] = now
	}
	return p.changes
}

// arrive records that a Node shows a change, which replaces all earlier ones.
func (p *probe) arrive(number int, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n, start := range p.pending {
		if n <= number {
			p.latencies = append(p.latencies, now.Sub(start))
			delete(p.pending, n)
		}
	}
}

// take returns the latencies since the last call, and the number of changes that have not arrived.
func (p *probe) take() (latencies []time.Duration, pending int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	latencies, p.latencies = p.latencies, nil
	return latencies, len(p.pending)
}

// watch creates the probes of all clusters and watches the Nodes of the clusters without faults until ctx ends.
func (b *isolation) watch(ctx context.Context) {
	for n := range b.clusters {
		p := newProbe(n, n >= b.sick)
		b.probes = append(b.probes, p)
		machines := harness.List(ctx, b.Client, clusterv1.GroupVersion.WithKind("Machine"), client.InNamespace(b.Namespace),
			client.MatchingLabels{clusterv1.ClusterNameLabel: harness.ClusterName(n)})
		for _, m := range machines {
			p.machines = append(p.machines, m.GetName())
		}
		if len(p.machines) != b.workersOf(n) {
			harness.Failf("cluster %s has %d Machines instead of %d", harness.ClusterName(n), len(p.machines), b.workersOf(n))
		}
		if !p.measured {
			continue
		}
		harness.Nodes(b.Workload(ctx, harness.ClusterName(n))).Watch(ctx, func(o *unstructured.Unstructured) {
			if o == nil {
				return
			}
			if number, err := strconv.Atoi(o.GetLabels()[changeLabel]); err == nil {
				p.arrive(number, time.Now())
			}
		})
	}
}

// load changes Machines at a constant rate for one phase and returns the latencies after all measured changes have arrived.
func (b *isolation) load(ctx context.Context) []time.Duration {
	end := time.Now().Add(b.phase)
	harness.InParallel(ctx, len(b.probes), -1, func(ctx context.Context, i int) {
		p := b.probes[i]
		at := time.Now().Add(b.every * time.Duration(i) / time.Duration(len(b.probes)))
		for n := 0; at.Before(end); n++ {
			harness.Sleep(ctx, max(0, time.Until(at)))
			m := b.CoreObject("Machine", p.machines[n%len(p.machines)])
			harness.SetMetadata(ctx, b.Client, m, "labels", map[string]any{changeLabel: strconv.Itoa(p.begin(time.Now()))})
			at = at.Add(b.every)
		}
	})
	var all []time.Duration
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, p := range b.probes {
		for {
			latencies, pending := p.take()
			all = append(all, latencies...)
			if pending == 0 {
				break
			}
			err := harness.Wait(ctx, 100*time.Millisecond)
			harness.Checkf(err, "wait for %d changes in cluster %s, which has no fault", pending, harness.ClusterName(p.cluster))
		}
	}
	return all
}

// phase is a measurement without or with a fault.
type phase struct {
	fault     string
	before    string // the next fault; empty in a phase with a fault
	round     int
	latencies []time.Duration // of the changes, until the Node shows them
	stolen    float64         // by the host, 0 to 1
}

type phases []phase

func (all phases) where(matches func(phase) bool) phases {
	return slices.DeleteFunc(slices.Clone(all), func(p phase) bool { return !matches(p) })
}

// with returns the phases with a fault, and without returns the phases of all rounds without one.
func (all phases) with(f fault) phases {
	return all.where(func(p phase) bool { return p.fault == f.name })
}

func (all phases) without() phases { return all.with(noFault()) }

func (all phases) latencies() (times []time.Duration) {
	for _, p := range all {
		times = append(times, p.latencies...)
	}
	return times
}

func (all phases) quantile(q float64) time.Duration { return harness.Quantile(all.latencies(), q) }

// ratio is the p99 divided by the p99 of other phases; 0 without a measurement.
func (all phases) ratio(others phases) float64 {
	base := others.quantile(0.99)
	if base == 0 {
		return 0
	}
	return all.quantile(0.99).Seconds() / base.Seconds()
}

func (all phases) rounds() int {
	n := 0
	for _, p := range all {
		n = max(n, p.round+1)
	}
	return n
}

// interval is the 90 % confidence interval of a ratio, from a bootstrap over the rounds, whose phases belong together. The
// result is the same each time.
func (all phases) interval(healthy phases) (low, high float64) {
	const draws = 1000
	n := all.rounds()
	if n == 0 {
		return 0, 0
	}
	random := rand.New(rand.NewPCG(0, 0))
	of := func(source phases, round int) phases {
		return source.where(func(p phase) bool { return p.round == round })
	}
	ratios := make([]float64, draws)
	for i := range ratios {
		var drawn, drawnHealthy phases
		for range n {
			round := random.IntN(n)
			drawn, drawnHealthy = append(drawn, of(all, round)...), append(drawnHealthy, of(healthy, round)...)
		}
		ratios[i] = drawn.ratio(drawnHealthy)
	}
	slices.Sort(ratios)
	return ratios[draws/20], ratios[draws-1-draws/20]
}

func (all phases) figures(host *harness.Host) []harness.Figure {
	figure := func(name, title string, value float64) harness.Figure {
		return harness.NewFigure("isolation."+name, title, value, harness.Count)
	}
	var figures []harness.Figure
	for _, f := range append([]fault{noFault()}, faults()...) {
		of := all.with(f)
		figures = append(figures,
			figure(f.name+".p50", f.title+": p50 of the others (ms)", harness.Milliseconds(of.quantile(0.5))),
			figure(f.name+".p99", "  p99 of the others (ms)", harness.Milliseconds(of.quantile(0.99))),
			figure(f.name+".changes", "  changes", float64(len(of.latencies()))))
		if f == noFault() {
			continue
		}
		// All phases without a fault repeat better than only the phases before this fault.
		low, high := of.interval(all.without())
		figures = append(figures,
			figure(f.name+".ratio", "  p99, divided by the p99 while all are well", of.ratio(all.without())).AtMost(1.1),
			figure(f.name+".ratio.low", "    90 % confidence interval: from", low),
			figure(f.name+".ratio.high", "    to", high))
	}
	stolen := 0.0
	for _, p := range all {
		stolen = max(stolen, p.stolen)
	}
	return append(figures,
		figure("stolen", "the host took of the processors' time, in the worst phase (%)", 100*stolen),
		figure("again", fmt.Sprintf("  comparisons made again because it took more than %.1f %%", 100*harness.MaxStolen), float64(host.Repeats)),
		figure("held", "  time for that, and to wait for the host before a comparison (s)", host.Waited.Seconds()))
}

// chart shows the p99 by round.
func (all phases) chart() harness.Chart {
	c := harness.Chart{Title: "Changes in the clusters that are well, until they arrive on the Node", Axis: harness.Axis{Title: "round"}}
	for round := range all.rounds() {
		c.Axis.Ticks = append(c.Axis.Ticks, float64(round+1))
	}
	for _, f := range faults() {
		lines := []harness.Line{{Name: noFault().title}, {Name: f.title}}
		for _, p := range all {
			at, value := float64(p.round+1), harness.Milliseconds(phases{p}.quantile(0.99))
			switch f.name {
			case p.before:
				lines[0].Add(at, value)
			case p.fault:
				lines[1].Add(at, value)
			}
		}
		c.Panels = append(c.Panels, harness.Panel{Title: "p99, ms: " + f.name, Lines: lines})
	}
	return c
}

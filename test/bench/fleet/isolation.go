package fleet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
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
	harness.AtLeast(f, "sick", &b.sick, 1)
	harness.AtLeast(f, "workers", &b.workers, 1)
	harness.AtLeast(f, "rounds", &b.rounds, 2)
	harness.AtLeast(f, "phase", &b.phase, time.Second)
	harness.AtLeast(f, "every", &b.every, 10*time.Millisecond)
	harness.AtLeast(f, "patience", &b.patience, 0)
	return cmd
}

func (b *isolation) run(ctx context.Context) (err error) {
	if b.sick >= b.clusters || b.every > b.phase {
		return errors.New("--sick must be less than --clusters, and --every at most --phase")
	}
	if b.Manifest, err = harness.ReadTemplate(b.manifest); err != nil {
		return err
	}
	if err := b.RunReport(ctx, b.measure); err != nil {
		return err
	}
	return errors.Join(harness.WriteCSV(harness.Sibling(b.Out, ".csv"), b.phases.rows()), harness.WriteFile(harness.Sibling(b.Out, ".svg"), b.phases.chart().WriteSVG))
}

func (b *isolation) workersOf(n int) int {
	if n < b.sick {
		return b.workers
	}
	return 1
}

func (b *isolation) measure(ctx context.Context) error {
	b.Logf("starting a management cluster and a manager …")
	env, err := harness.StartEnvironment(ctx, b.Binary)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if b.Fleet, err = harness.NewFleet(b.Manifest, env.Config); err == nil {
		err = harness.InOrder(ctx, b.create, b.watch, b.warmUp, b.compareAll)
	}
	cancel() // ends the watches
	if err == nil {
		b.Add(b.phases.figures(b.host)...)
	}
	return errors.Join(env.WithLog(err), env.Stop())
}

func (b *isolation) warmUp(ctx context.Context) error {
	_, err := b.load(ctx)
	return err
}

// compareAll compares each fault in each round, so that all faults are measured under the same conditions.
func (b *isolation) compareAll(ctx context.Context) error {
	for round := range b.rounds {
		for _, f := range faults() {
			healthy, sick, err := b.compare(ctx, f)
			if err != nil {
				return err
			}
			healthy.round, sick.round = round, round
			b.Logf("round %d of %d, %s: p99 %.1f ms, without %.1f ms", round+1, b.rounds, f.title,
				harness.Milliseconds(phases{sick}.p99(whole)), harness.Milliseconds(phases{healthy}.p99(whole)))
			b.phases = append(b.phases, healthy, sick)
		}
	}
	return nil
}

// create creates all clusters and waits until their Machines are Running and nothing is written.
func (b *isolation) create(ctx context.Context) error {
	b.host = harness.NewHost(b.patience, b.Logf)
	b.Logf("creating %d clusters, %d of them with %d workers …", b.clusters, b.sick, b.workers)
	const timeout = 10 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := b.CreateAll(ctx, b.clusters, b.workersOf); err != nil {
		return err
	}
	machines := b.sick*b.workers + b.clusters - b.sick
	if err := b.Objects("machines").UntilEach(ctx, machines, harness.IsRunning); err != nil {
		return err
	}
	_, _, err := harness.WaitSettled(ctx, b.Config, harness.QuietPeriod, timeout)
	return err
}

// compare measures a phase without and a phase with a fault, and repeats them if the host took too much processor time.
func (b *isolation) compare(ctx context.Context, f fault) (healthy, sick phase, err error) {
	const recovery = 10 * time.Second // includes the backoff of failed reconciliations
	for {
		if err := b.host.WaitQuiet(ctx, recovery); err != nil {
			return healthy, sick, err
		}
		if healthy, err = b.observe(ctx); err != nil {
			return healthy, sick, err
		}
		if b.host.MustRepeat(healthy.stolen, recovery+b.phase) {
			continue
		}
		if err := b.set(ctx, f); err != nil {
			return healthy, sick, err
		}
		if sick, err = b.observe(ctx); err != nil {
			return healthy, sick, err
		}
		if err := b.set(ctx, noFault()); err != nil {
			return healthy, sick, err
		}
		if !b.host.MustRepeat(sick.stolen, recovery+2*b.phase) {
			healthy.fault, healthy.before, sick.fault = noFault().name, f.name, f.name
			return healthy, sick, nil
		}
	}
}

func (b *isolation) observe(ctx context.Context) (p phase, err error) {
	p.stolen, err = b.host.StolenDuring(func() (err error) {
		p.latencies, err = b.load(ctx)
		return err
	})
	return p, err
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
		{"slow", "some take a second to answer", hostedv1.APISlowAnnotation, "1s"},
		{"hanging", "some do not answer within any time limit", hostedv1.APISlowAnnotation, "10m"},
		{"failing", "some answer with status 500", hostedv1.APIErrorsAnnotation, "500"},
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
func (b *isolation) set(ctx context.Context, f fault) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for n := range b.sick {
		plane := b.Object(hostedv1.GroupVersion.WithKind("HostedControlPlane"), harness.ClusterName(n))
		if err := harness.SetMetadata(ctx, b.Client, plane, "annotations", f.annotations()); err != nil {
			return fmt.Errorf("annotate HostedControlPlane %s: %w", plane.GetName(), err)
		}
	}
	for n := range b.sick {
		config, err := b.Workload(ctx, n)
		if err != nil {
			return err
		}
		c, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			return err
		}
		for isHealthy(ctx, c) == (f.annotation != "") && err == nil {
			err = harness.Sleep(ctx, 100*time.Millisecond)
		}
		if err != nil {
			return fmt.Errorf("wait until cluster %s is in the state %q: %w", harness.ClusterName(n), f.name, err)
		}
	}
	return nil
}

// isHealthy reports whether an API server is ready and responds quickly.
func isHealthy(ctx context.Context, c discovery.DiscoveryInterface) bool {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	return c.RESTClient().Get().AbsPath("/readyz").MaxRetries(0).Do(ctx).Error() == nil
}

// changeLabel is copied from a Machine to its Node. Its value is the number of the change.
const changeLabel = "isolation.node.cluster.x-k8s.io/change"

// latency is the duration of a change: from the request, and from its acceptance by the management cluster, until the Node
// shows it.
type latency struct{ whole, own time.Duration }

// pendingChange has not arrived on the Node. accepted is zero until the management cluster shows it.
type pendingChange struct{ start, accepted time.Time }

// probe changes the Machines of a cluster in turns.
type probe struct {
	cluster  int
	machines []string
	measured bool // the cluster never has a fault

	mu        sync.Mutex
	changes   int
	pending   map[int]*pendingChange // by number
	latencies []latency
}

func newProbe(cluster int, measured bool) *probe {
	return &probe{cluster: cluster, measured: measured, pending: map[int]*pendingChange{}}
}

// begin returns the number of a new change.
func (p *probe) begin(now time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changes++
	if p.measured {
		p.pending[p.changes] = &pendingChange{start: now}
	}
	return p.changes
}

// accept records that the management cluster shows a change, and therefore all earlier ones.
func (p *probe) accept(number int, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n, c := range p.pending {
		if n <= number && c.accepted.IsZero() {
			c.accepted = now
		}
	}
}

// arrive records that a Node shows a change, which replaces all earlier ones. It can precede the acceptance, because the
// two are observed by different watches.
func (p *probe) arrive(number int, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n, c := range p.pending {
		if n > number {
			continue
		}
		l := latency{whole: now.Sub(c.start)}
		if !c.accepted.IsZero() {
			l.own = now.Sub(c.accepted)
		}
		p.latencies = append(p.latencies, l)
		delete(p.pending, n)
	}
}

// take returns the latencies since the last call, and the number of changes that have not arrived.
func (p *probe) take() (latencies []latency, pending int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	latencies, p.latencies = p.latencies, nil
	return latencies, len(p.pending)
}

// watch creates the probes of all clusters, and watches all Machines and the Nodes of the clusters without faults.
func (b *isolation) watch(ctx context.Context) error {
	byMachine := map[string]*probe{}
	for n := range b.clusters {
		p := newProbe(n, n >= b.sick)
		b.probes = append(b.probes, p)
		machines, err := harness.List(ctx, b.Client, clusterv1.GroupVersion.WithKind("Machine"), client.InNamespace(b.Namespace),
			client.MatchingLabels{clusterv1.ClusterNameLabel: harness.ClusterName(n)})
		if err != nil {
			return err
		}
		for _, m := range machines {
			p.machines = append(p.machines, m.GetName())
			byMachine[m.GetName()] = p
		}
		if len(p.machines) != b.workersOf(n) {
			return fmt.Errorf("cluster %s has %d Machines instead of %d", harness.ClusterName(n), len(p.machines), b.workersOf(n))
		}
		if !p.measured {
			continue
		}
		config, err := b.Workload(ctx, n)
		if err != nil {
			return err
		}
		if err := watchChanges(ctx, harness.Nodes(config), func(_ string, number int) { p.arrive(number, time.Now()) }); err != nil {
			return fmt.Errorf("watch the Nodes of cluster %s: %w", harness.ClusterName(n), err)
		}
	}
	return watchChanges(ctx, b.Objects("machines"), func(name string, number int) {
		if p := byMachine[name]; p != nil {
			p.accept(number, time.Now())
		}
	})
}

// watchChanges calls changed with the name of each object and the number of its last change until ctx ends.
func watchChanges(ctx context.Context, objects harness.Objects, changed func(name string, number int)) error {
	_, _, err := objects.Watch(ctx, func(o *unstructured.Unstructured) {
		if o == nil {
			return
		}
		if number, err := strconv.Atoi(o.GetLabels()[changeLabel]); err == nil {
			changed(o.GetName(), number)
		}
	})
	return err
}

// load changes Machines at a constant rate for one phase and returns the latencies after all measured changes have arrived.
func (b *isolation) load(ctx context.Context) ([]latency, error) {
	end := time.Now().Add(b.phase)
	err := harness.InParallel(ctx, len(b.probes), -1, func(ctx context.Context, i int) error {
		p := b.probes[i]
		at := time.Now().Add(b.every * time.Duration(i) / time.Duration(len(b.probes)))
		for n := 0; at.Before(end); n++ {
			if err := harness.Sleep(ctx, max(0, time.Until(at))); err != nil {
				return err
			}
			m := b.CoreObject("Machine", p.machines[n%len(p.machines)])
			if err := harness.SetMetadata(ctx, b.Client, m, "labels", map[string]any{changeLabel: strconv.Itoa(p.begin(time.Now()))}); err != nil {
				return fmt.Errorf("change Machine %s: %w", m.GetName(), err)
			}
			at = at.Add(b.every)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var all []latency
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, p := range b.probes {
		for {
			latencies, pending := p.take()
			all = append(all, latencies...)
			if pending == 0 {
				break
			}
			if err := harness.Sleep(ctx, 100*time.Millisecond); err != nil {
				return nil, fmt.Errorf("wait for %d changes in cluster %s, which has no fault: %w", pending, harness.ClusterName(p.cluster), err)
			}
		}
	}
	return all, nil
}

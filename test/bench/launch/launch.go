// Package launch measures management clusters of `slipway up` with real nodes: their start, their resource use and the
// quickstart (launch), the stages of the creation of nodes (timeline), and the commands of clusterctl (verbs).
package launch

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/test/bench/harness"
)

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
	cmd := b.Command("launch", "measure a management cluster and the quickstart with real nodes", "launch.json", b.run)
	f := cmd.Flags()
	f.StringSliceVar(&b.only, "only", nil, "groups to measure: up, cluster, class, kubeadm (default: all)")
	f.StringVar(&b.manifest, "manifest", filepath.Join("examples", "without-class.yaml"), "cluster with one pool")
	f.StringVar(&b.class, "class", filepath.Join("examples", "quickstart.yaml"), "the same cluster with a ClusterClass")
	f.StringVar(&b.kubeadm, "kubeadm", filepath.Join("examples", "kubeadm.yaml"), "cluster with one control plane Machine and one worker")
	f.IntVar(&b.runs, "runs", 3, "number of starts, and of clusters with a class or a kubeadm control plane")
	f.DurationVar(&b.idle, "idle", time.Minute, "duration of the measurement of an idle management cluster")
	return cmd
}

// groups are the measurements by name, in order.
func (b *benchmark) groups() []group {
	return []group{{"up", b.measureUp}, {"cluster", b.measureCluster}, {"class", b.measureClass}, {"kubeadm", b.measureKubeadm}}
}

type group struct {
	name    string
	measure func(context.Context)
}

func (b *benchmark) run(ctx context.Context) {
	for _, name := range b.only {
		if !slices.ContainsFunc(b.groups(), func(g group) bool { return g.name == name }) {
			harness.Failf("--only: there is no group %q", name)
		}
	}
	if b.runs < 1 {
		harness.Failf("--runs must be above zero")
	}
	b.RunReport(ctx, b.measure)
	if len(b.samples) > 0 {
		harness.WriteFile(harness.Sibling(b.Out, ".svg"), usageChart(b.start, b.samples, b.Report.Steps).SVG())
	}
	if n := len(b.Report.Unmeasured); n > 0 {
		harness.Failf("%d of the measurements failed", n)
	}
}

// measure runs the chosen groups, also after one has failed.
func (b *benchmark) measure(ctx context.Context) {
	for _, g := range b.groups() {
		if len(b.only) > 0 && !slices.Contains(b.only, g.name) {
			continue
		}
		if err := harness.Try(func() { g.measure(ctx) }); err != nil {
			b.Report.Unmeasured = append(b.Report.Unmeasured, fmt.Sprintf("%s: %v", g.name, err))
		}
	}
}

// measureUp starts management clusters, each with an empty data directory and then with the same data.
func (b *benchmark) measureUp(ctx context.Context) {
	var first, again []float64
	for n := range b.runs {
		b.Logf("starting a management cluster, %d of %d …", n+1, b.runs)
		harness.WithInstallation(ctx, b.Binary, func(in *harness.Installation) {
			first = append(first, in.Start(ctx))
			in.Down(ctx)
			again = append(again, in.Start(ctx))
		})
	}
	b.Add(
		harness.NewMedian("up.first", "up -d until ready, on a bare data directory", first, harness.Seconds).AtMost(6),
		harness.NewMedian("up.again", "up -d until ready, on the same again", again, harness.Seconds).AtMost(4),
		harness.NewFigure("up.binary", "size of the binary", float64(harness.Must(os.Stat(b.Binary)).Size())/1e6, harness.Megabytes),
	)
}

// management is a running management cluster.
type management struct {
	*benchmark
	in     *harness.Installation
	config *rest.Config
	probe  probe
}

// withManagement calls measure with a management cluster, which is removed afterwards.
func (b *benchmark) withManagement(ctx context.Context, measure func(*management)) {
	harness.WithInstallation(ctx, b.Binary, func(in *harness.Installation) {
		b.Logf("starting a management cluster …")
		config := in.Up(ctx)
		measure(&management{benchmark: b, in: in, config: config, probe: newProbe("/proc", in.PID(ctx))})
	})
}

// measureCluster measures one management cluster: without clusters, during the quickstart, with it, and while it scales.
func (b *benchmark) measureCluster(ctx context.Context) {
	b.withManagement(ctx, func(m *management) {
		c := m.newCluster(b.manifest)
		m.measureIdle(ctx, "empty", "without clusters")
		c.measureQuickstart(ctx)
		m.measureIdle(ctx, "cluster", "with the quickstart")
		c.measureScale(ctx)
	})
}

// readyTimeout ends a run that hangs.
const readyTimeout = 5 * time.Minute

// Steps of the creation of a cluster.
const (
	stepApplied        = "applied"
	stepInfrastructure = "infrastructure provisioned"
	stepControlPlane   = "control plane initialized"
	stepBootstrap      = "bootstrap data made"
	stepAvailable      = "Cluster Available"
	stepPoolReady      = "MachinePool counts every node"
	stepSettled        = "settled: last write"
	stepNodeRegistered = "node %d registered"
	stepNodeReady      = "node %d Ready"
)

// journal records the first occurrence of each step.
type journal struct {
	start time.Time
	mu    sync.Mutex
	steps []harness.Step
}

func (j *journal) record(step string) { j.recordAt(step, time.Now()) }

func (j *journal) recordAt(step string, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.ContainsFunc(j.steps, func(s harness.Step) bool { return s.Name == step }) {
		j.steps = append(j.steps, harness.Step{Name: step, After: at.Sub(j.start).Seconds()})
	}
}

// sorted returns the steps by time.
func (j *journal) sorted() []harness.Step {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.SortedStableFunc(slices.Values(j.steps), func(a, b harness.Step) int { return cmp.Compare(a.After, b.After) })
}

// cluster is a Cluster in a management cluster.
type cluster struct {
	*management
	harness.Fleet
	file string
	journal
}

func (m *management) newCluster(file string) *cluster {
	return &cluster{management: m, Fleet: harness.NewFleet(harness.ReadManifest(file), m.config), file: file}
}

// create applies the manifest and waits until all Nodes are Ready and the Cluster is Available. It returns the seconds until
// the last Node was Ready.
func (c *cluster) create(ctx context.Context) (ready float64) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	c.start = time.Now()
	c.in.Kubectl(ctx, "apply", "-f", c.file)
	c.record(stepApplied)
	initialized := make(chan struct{})
	harness.Together(ctx,
		func(ctx context.Context) { c.followCluster(ctx, sync.OnceFunc(func() { close(initialized) })) },
		c.followWorkers,
		func(ctx context.Context) {
			select {
			case <-initialized:
				c.followNodes(ctx)
			case <-ctx.Done():
				harness.Check(ctx.Err())
			}
		})
	last := fmt.Sprintf(stepNodeReady, c.Nodes())
	i := slices.IndexFunc(c.steps, func(s harness.Step) bool { return s.Name == last })
	if i < 0 {
		harness.Failf("step %q did not occur", last)
	}
	return c.steps[i].After
}

// follow watches one object of a resource until done returns true.
func (c *cluster) follow(ctx context.Context, plural, name string, done func(*unstructured.Unstructured) bool) {
	c.Objects(plural).Until(ctx, func(all []*unstructured.Unstructured) bool {
		return slices.ContainsFunc(all, func(o *unstructured.Unstructured) bool { return o.GetName() == name && done(o) })
	})
}

func (c *cluster) followCluster(ctx context.Context, initialized func()) {
	c.follow(ctx, "clusters", c.Cluster, func(o *unstructured.Unstructured) bool {
		if isInitialized(o, "infrastructureProvisioned") {
			c.record(stepInfrastructure)
		}
		if isInitialized(o, "controlPlaneInitialized") {
			c.record(stepControlPlane)
			initialized()
		}
		if !harness.IsTrue(o, "Available") {
			return false
		}
		c.record(stepAvailable)
		return true
	})
}

func (c *cluster) followWorkers(ctx context.Context) {
	plural := "machinedeployments"
	if c.IsPool {
		plural = "machinepools"
	}
	c.follow(ctx, plural, c.Workers, func(o *unstructured.Unstructured) bool {
		if isInitialized(o, "bootstrapDataSecretCreated") {
			c.record(stepBootstrap)
		}
		if harness.Integer(o, "status", "readyReplicas") != c.Replicas {
			return false
		}
		c.record(stepPoolReady)
		return true
	})
}

func (c *cluster) followNodes(ctx context.Context) {
	harness.Nodes(c.Workload(ctx, c.Cluster)).Until(ctx, func(all []*unstructured.Unstructured) bool {
		for n := range all {
			c.record(fmt.Sprintf(stepNodeRegistered, n+1))
		}
		ready := readyNodes(all)
		for n := range ready {
			c.record(fmt.Sprintf(stepNodeReady, n+1))
		}
		return ready >= c.Nodes()
	})
}

// isInitialized reports whether a field of status.initialization is true.
func isInitialized(o *unstructured.Unstructured, field string) bool {
	value, _, _ := unstructured.NestedBool(o.Object, "status", "initialization", field)
	return value
}

func readyNodes(all []*unstructured.Unstructured) int {
	n := 0
	for _, node := range all {
		if node.GetDeletionTimestamp() == nil && harness.IsTrue(node, "Ready") {
			n++
		}
	}
	return n
}

// measureQuickstart creates the cluster and samples the resource use until the API server has settled.
func (c *cluster) measureQuickstart(ctx context.Context) {
	c.Logf("applying %s …", c.file)
	before := harness.CountRequests(ctx, c.Config)
	var samples []usage
	var ready float64
	var after harness.RequestCounts
	harness.Sampling(ctx, sampleInterval, func() { samples = append(samples, c.probe.usage()) }, func() {
		ready = c.create(ctx)
		c.Logf("waiting until it has settled …")
		var settled time.Time
		after, settled = harness.WaitSettled(ctx, c.Config, 2*time.Second, 2*time.Minute)
		c.recordAt(stepSettled, settled)
	})
	requests := after.Since(before)
	c.benchmark.start, c.samples, c.Report.Steps, c.Report.Writes = c.start, samples, c.sorted(), requests.Lines(harness.IsWrite)
	figure := func(name, title string, value float64, unit harness.Unit) harness.Figure {
		return harness.NewFigure("quickstart."+name, title, value, unit)
	}
	c.Add(
		figure("ready", fmt.Sprintf("quickstart, from apply until %d Nodes are Ready", c.Nodes()), ready, harness.Seconds).AtMost(45),
		figure("memory", "most memory of the management cluster meanwhile", peakMemory(samples, managementOf), harness.Megabytes),
		figure("hosted", "most memory of the hosted control plane meanwhile", peakMemory(samples, hostedOf), harness.Megabytes),
		figure("writes", "writes to the API until it settled, leases apart", float64(requests.Total(harness.IsWrite)), harness.Count),
		figure("reads", "reads until it settled (lists and watches included)", float64(requests.Total(harness.IsRead)), harness.Count),
	)
}

// measureScale scales the pool up and down and deletes the cluster.
func (c *cluster) measureScale(ctx context.Context) {
	small, large := c.Replicas, c.Replicas+3
	c.Logf("scaling the pool from %d to %d and back …", small, large)
	up, down := c.scale(ctx, large), c.scale(ctx, small)
	c.Logf("deleting the cluster …")
	start := time.Now()
	c.in.DeleteCluster(ctx, c.Namespace, c.Cluster)
	c.Add(
		harness.NewFigure("scale.up", fmt.Sprintf("pool from %d to %d Nodes that are Ready", small, large), up, harness.Seconds).AtMost(20),
		harness.NewFigure("scale.down", fmt.Sprintf("pool from %d to %d Nodes", large, small), down, harness.Seconds),
		harness.NewFigure("scale.delete", "delete cluster, until nothing of it is left", time.Since(start).Seconds(), harness.Seconds),
	)
}

// scale returns the time in seconds until exactly the desired Nodes exist and all are Ready.
func (c *cluster) scale(ctx context.Context, replicas int) float64 {
	config := c.Workload(ctx, c.Cluster)
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	start := time.Now()
	c.in.Kubectl(ctx, "scale", "machinepool", c.Workers, "-n", c.Namespace, "--replicas", strconv.Itoa(replicas))
	harness.Nodes(config).Until(ctx, func(all []*unstructured.Unstructured) bool {
		return len(all) == replicas && readyNodes(all) == replicas
	})
	return time.Since(start).Seconds()
}

// alternate creates and deletes the clusters of two manifests in turns. It returns the seconds until their Nodes are Ready.
func (m *management) alternate(ctx context.Context, first, second string) (times [2][]float64) {
	for n := range m.runs {
		for i, file := range []string{first, second} {
			m.Logf("cluster of %s, %d of %d …", file, n+1, m.runs)
			c := m.newCluster(file)
			harness.Checkf(harness.Try(func() { times[i] = append(times[i], c.create(ctx)) }), "%s", file)
			for _, step := range c.sorted() {
				m.Logf("  %6.1f s  %s", step.After, step.Name)
			}
			m.in.DeleteCluster(ctx, c.Namespace, c.Cluster)
		}
	}
	return times
}

// measureClass compares a cluster of a class with the same cluster without a class.
func (b *benchmark) measureClass(ctx context.Context) {
	b.withManagement(ctx, func(m *management) {
		times := m.alternate(ctx, b.manifest, b.class)
		without := harness.NewMedian("class.without", "a cluster without a class, from apply until its Nodes are Ready", times[0], harness.Seconds)
		b.Add(without, harness.NewMedian("class.ready", "the same of a class", times[1], harness.Seconds).AtMost(1.1*without.Value))
	})
}

// measureKubeadm creates clusters with one and with three control plane Machines.
func (b *benchmark) measureKubeadm(ctx context.Context) {
	b.withManagement(ctx, func(m *management) {
		file := filepath.Join(m.in.Folder, "three-control-planes.yaml")
		harness.WriteFile(file, threeControlPlanes(string(harness.Must(os.ReadFile(b.kubeadm)))))
		times := m.alternate(ctx, b.kubeadm, file)
		title := "a control plane node and a worker of kubeadm, from apply until both are Ready"
		b.Add(
			harness.NewMedian("kubeadm.ready", title, times[0], harness.Seconds).AtMost(35),
			harness.NewMedian("kubeadm.three", "three control plane nodes and a worker, likewise", times[1], harness.Seconds).AtMost(80))
	})
}

// threeControlPlanes changes the first number of replicas in a manifest, which must belong to the control plane, from 1 to 3.
func threeControlPlanes(text string) string {
	text = strings.Replace(text, "\n  replicas: 1\n", "\n  replicas: 3\n", 1)
	if m := harness.ParseManifest(text); m.ControlPlanes != 3 {
		harness.Failf("the first object with one replica is not a KubeadmControlPlane")
	}
	return text
}

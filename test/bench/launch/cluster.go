package launch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/tools/benchmark/parse"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/test/bench/harness"
)

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
		j.steps = append(j.steps, harness.Step{Name: step, After: at.Sub(j.start)})
	}
}

// sorted returns the steps by time.
func (j *journal) sorted() []harness.Step {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.SortedStableFunc(slices.Values(j.steps), func(a, b harness.Step) int { return int(a.After - b.After) })
}

// cluster is a Cluster in a management cluster.
type cluster struct {
	*management
	harness.Manifest
	file string
	journal
}

// create applies the manifest and waits until all Nodes are Ready and the Cluster is Available. It returns the time until
// the last Node was Ready.
func (c *cluster) create(ctx context.Context) (ready float64, err error) {
	bounded, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	c.start = time.Now()
	if err := c.in.Kubectl(bounded, "apply", "-f", c.file); err != nil {
		return 0, err
	}
	c.record(stepApplied)
	initialized := make(chan struct{})
	group, bounded := errgroup.WithContext(bounded)
	group.Go(func() error { return c.followCluster(bounded, sync.OnceFunc(func() { close(initialized) })) })
	group.Go(func() error { return c.followWorkers(bounded) })
	group.Go(func() error {
		select {
		case <-initialized:
			return c.followNodes(bounded)
		case <-bounded.Done():
			return bounded.Err()
		}
	})
	if err := group.Wait(); err != nil {
		return 0, fmt.Errorf("%w; %s", err, c.in.DescribeCluster(ctx, c.Namespace, c.Cluster))
	}
	last := fmt.Sprintf(stepNodeReady, c.Nodes())
	i := slices.IndexFunc(c.steps, func(s harness.Step) bool { return s.Name == last })
	if i < 0 {
		return 0, fmt.Errorf("step %q did not occur", last)
	}
	return c.steps[i].After.Seconds(), nil
}

// follow watches one object of a resource until done returns true.
func (c *cluster) follow(ctx context.Context, plural, name string, done func(*unstructured.Unstructured) bool) error {
	objects := harness.Objects{Config: c.config, Resource: harness.CoreResource(plural), Namespace: c.Namespace}
	return objects.Until(ctx, func(all []*unstructured.Unstructured) bool {
		return slices.ContainsFunc(all, func(o *unstructured.Unstructured) bool { return o.GetName() == name && done(o) })
	})
}

func (c *cluster) followCluster(ctx context.Context, initialized func()) error {
	return c.follow(ctx, "clusters", c.Cluster, func(o *unstructured.Unstructured) bool {
		if harness.Bool(o, "status", "initialization", "infrastructureProvisioned") {
			c.record(stepInfrastructure)
		}
		if harness.Bool(o, "status", "initialization", "controlPlaneInitialized") {
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

func (c *cluster) followWorkers(ctx context.Context) error {
	plural := "machinedeployments"
	if c.IsPool {
		plural = "machinepools"
	}
	return c.follow(ctx, plural, c.Workers, func(o *unstructured.Unstructured) bool {
		if harness.Bool(o, "status", "initialization", "bootstrapDataSecretCreated") {
			c.record(stepBootstrap)
		}
		if harness.Integer(o, "status", "readyReplicas") != c.Replicas {
			return false
		}
		c.record(stepPoolReady)
		return true
	})
}

func (c *cluster) workload(ctx context.Context) (*rest.Config, error) {
	return harness.WorkloadConfig(ctx, c.config, types.NamespacedName{Namespace: c.Namespace, Name: c.Cluster})
}

func (c *cluster) followNodes(ctx context.Context) error {
	config, err := c.workload(ctx)
	if err != nil {
		return err
	}
	return harness.Nodes(config).Until(ctx, func(all []*unstructured.Unstructured) bool {
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
func (c *cluster) measureQuickstart(ctx context.Context) error {
	c.Logf("applying %s …", c.file)
	before, err := harness.CountRequests(ctx, c.config)
	if err != nil {
		return err
	}
	var samples []usage
	stop := harness.Sample(ctx, sampleInterval, func() error {
		u, err := c.probe.usage()
		samples = append(samples, u)
		return err
	})
	ready, err := c.create(ctx)
	var after harness.RequestCounts
	if err == nil {
		c.Logf("waiting until it has settled …")
		var settled time.Time
		after, settled, err = harness.WaitSettled(ctx, c.config, 2*time.Second, 2*time.Minute)
		c.recordAt(stepSettled, settled)
	}
	if err := errors.Join(err, stop()); err != nil {
		return err
	}
	if !c.wants(groupQuickstart) {
		return nil
	}
	requests := after.Since(before)
	c.benchmark.start, c.samples, c.Report.Steps, c.Report.Writes = c.start, samples, c.sorted(), requests.Lines(harness.IsWrite)
	c.Add(
		harness.NewFigure("quickstart.ready", fmt.Sprintf("quickstart, from apply until %d Nodes are Ready", c.Nodes()), ready, harness.Seconds).AtMost(45),
		harness.NewFigure("quickstart.memory", "most memory of the management cluster meanwhile", peakMemory(samples, managementOf), harness.Megabytes),
		harness.NewFigure("quickstart.hosted", "most memory of the hosted control plane meanwhile", peakMemory(samples, hostedOf), harness.Megabytes),
		harness.NewFigure("quickstart.writes", "writes to the API until it settled, leases apart", float64(requests.Total(harness.IsWrite)), harness.Count),
		harness.NewFigure("quickstart.reads", "reads until it settled (lists and watches included)", float64(requests.Total(harness.IsRead)), harness.Count),
	)
	return nil
}

// measureScale scales the pool up and down and deletes the cluster.
func (c *cluster) measureScale(ctx context.Context) error {
	small, large := c.Replicas, c.Replicas+3
	c.Logf("scaling the pool from %d to %d and back …", small, large)
	up, err := c.scale(ctx, large)
	if err != nil {
		return err
	}
	down, err := c.scale(ctx, small)
	if err != nil {
		return err
	}
	c.Logf("deleting the cluster …")
	start := time.Now()
	if err := c.in.DeleteCluster(ctx, c.Namespace, c.Cluster); err != nil {
		return err
	}
	c.Add(
		harness.NewFigure("scale.up", fmt.Sprintf("pool from %d to %d Nodes that are Ready", small, large), up, harness.Seconds).AtMost(20),
		harness.NewFigure("scale.down", fmt.Sprintf("pool from %d to %d Nodes", large, small), down, harness.Seconds),
		harness.NewFigure("scale.delete", "delete cluster, until nothing of it is left", time.Since(start).Seconds(), harness.Seconds),
	)
	return nil
}

// scale returns the time in seconds until exactly the desired Nodes exist and all are Ready.
func (c *cluster) scale(ctx context.Context, replicas int) (float64, error) {
	config, err := c.workload(ctx)
	if err != nil {
		return 0, err
	}
	bounded, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	start := time.Now()
	if err := c.in.Kubectl(bounded, "scale", "machinepool", c.Workers, "-n", c.Namespace, "--replicas", strconv.Itoa(replicas)); err != nil {
		return 0, err
	}
	err = harness.Nodes(config).Until(bounded, func(all []*unstructured.Unstructured) bool {
		return len(all) == replicas && readyNodes(all) == replicas
	})
	if err != nil {
		return 0, fmt.Errorf("%w; %s", err, c.in.DescribeCluster(ctx, c.Namespace, c.Cluster))
	}
	return time.Since(start).Seconds(), nil
}

// alternate creates and deletes the clusters of two manifests in turns. It returns the seconds until their Nodes are Ready.
func (m *management) alternate(ctx context.Context, first, second string) (times [2][]float64, err error) {
	for n := range m.runs {
		for i, file := range []string{first, second} {
			m.Logf("cluster of %s, %d of %d …", file, n+1, m.runs)
			manifest, err := harness.ReadManifest(file)
			if err != nil {
				return times, err
			}
			c := &cluster{management: m, Manifest: manifest, file: file}
			ready, err := c.create(ctx)
			if err != nil {
				return times, fmt.Errorf("%s: %w", file, err)
			}
			times[i] = append(times[i], ready)
			for _, step := range c.sorted() {
				m.Logf("  %6.1f s  %s", step.After.Seconds(), step.Name)
			}
			if err := m.in.DeleteCluster(ctx, c.Namespace, c.Cluster); err != nil {
				return times, err
			}
		}
	}
	return times, nil
}

// measureClass compares a cluster of a class with the same cluster without a class.
func (b *benchmark) measureClass(ctx context.Context) error {
	return b.withManagement(ctx, func(m *management) error {
		times, err := m.alternate(ctx, b.manifest, b.class)
		if err != nil {
			return err
		}
		without := harness.NewMedian("class.without", "a cluster without a class, from apply until its Nodes are Ready", times[0], harness.Seconds)
		b.Add(without, harness.NewMedian("class.ready", "the same of a class", times[1], harness.Seconds).AtMost(1.1*without.Value))
		return nil
	})
}

// measureKubeadm creates clusters with one and with three control plane Machines.
func (b *benchmark) measureKubeadm(ctx context.Context) error {
	return b.withManagement(ctx, func(m *management) error {
		text, err := os.ReadFile(b.kubeadm)
		if err != nil {
			return err
		}
		three, err := withControlPlanes(string(text), 3)
		if err != nil {
			return fmt.Errorf("%s: %w", b.kubeadm, err)
		}
		file := filepath.Join(m.in.Folder, "three-control-planes.yaml")
		if err := os.WriteFile(file, []byte(three), 0o600); err != nil {
			return err
		}
		times, err := m.alternate(ctx, b.kubeadm, file)
		if err != nil {
			return err
		}
		b.Add(
			harness.NewMedian("kubeadm.ready", "a control plane node and a worker of kubeadm, from apply until both are Ready", times[0], harness.Seconds).AtMost(35),
			harness.NewMedian("kubeadm.three", "three control plane nodes and a worker, likewise", times[1], harness.Seconds).AtMost(80))
		return nil
	})
}

// withControlPlanes returns a manifest with another number of control plane Machines than one.
func withControlPlanes(text string, replicas int) (string, error) {
	const one = "\n  replicas: 1\n"
	documents := strings.Split(text, "\n---\n")
	for i, d := range documents {
		if strings.Contains(d, "\nkind: KubeadmControlPlane\n") && strings.Count(d, one) == 1 {
			documents[i] = strings.Replace(d, one, fmt.Sprintf("\n  replicas: %d\n", replicas), 1)
			return strings.Join(documents, "\n---\n"), nil
		}
	}
	return "", errors.New("the manifest has no KubeadmControlPlane with one replica")
}

// measureFunctions runs the Go benchmarks of pure functions.
func (b *benchmark) measureFunctions(ctx context.Context) error {
	b.Logf("running the Go benchmarks …")
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", ".", "-benchmem", "./internal/controllers/cluster",
		"./internal/controllers/machinepool", "./internal/condition", "./internal/kubeadm/bootstrap/render", "./internal/conversion")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run go test: %w: %s%s", err, &stdout, &stderr)
	}
	functions, err := parseFunctions(stdout.String())
	b.Report.Functions = functions
	return err
}

// parseFunctions parses the output of go test -bench -benchmem for several packages.
func parseFunctions(text string) ([]harness.Function, error) {
	var out []harness.Function
	processors := regexp.MustCompile(`-\d+$`)
	folder := ""
	for _, line := range strings.Split(text, "\n") {
		if name, ok := strings.CutPrefix(line, "pkg: "); ok {
			folder = name[strings.LastIndexByte(name, '/')+1:]
		}
		if !strings.HasPrefix(line, "Benchmark") {
			continue
		}
		b, err := parse.ParseLine(line)
		if err != nil {
			return nil, fmt.Errorf("parse benchmark %q: %w", line, err)
		}
		if required := parse.NsPerOp | parse.AllocsPerOp | parse.AllocedBytesPerOp; b.Measured&required != required {
			return nil, fmt.Errorf("benchmark %q does not contain time and memory", line)
		}
		name := processors.ReplaceAllString(strings.TrimPrefix(b.Name, "Benchmark"), "")
		out = append(out, harness.Function{Name: folder + "." + name, Nanoseconds: b.NsPerOp, Bytes: b.AllocedBytesPerOp, Allocations: b.AllocsPerOp})
	}
	if len(out) == 0 {
		return nil, errors.New("go test ran no benchmarks")
	}
	slices.SortFunc(out, func(a, b harness.Function) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

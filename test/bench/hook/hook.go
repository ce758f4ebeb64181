// Package hook measures the cost of calls of Runtime Extensions, and the effect of an extension that hangs on the others. Ten
// extensions run in a separate process, and the benchmark calls them as the controllers do.
package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/test/bench/harness"
)

// extensions is the number of extensions. The last one can hang.
const extensions = 10

type benchmark struct {
	harness.Options
	phase, length time.Duration

	calls   *hook.Extensions
	control *hook.Conn
}

func Command() *cobra.Command {
	b := &benchmark{}
	cmd := b.Command("hook", "measure calls of Runtime Extensions", "hook.json", b.run)
	f := cmd.Flags()
	f.DurationVar(&b.phase, "phase", 5*time.Second, "duration of each part")
	f.DurationVar(&b.length, "time", 10*time.Minute, "duration of the measurement of goroutines and memory")
	harness.AtLeast(f, "phase", &b.phase, time.Second)
	harness.AtLeast(f, "time", &b.length, time.Second)
	return cmd
}

func (b *benchmark) run(ctx context.Context) error {
	ready, stop, err := startServer(ctx)
	if err != nil {
		return fmt.Errorf("start the extensions: %w", err)
	}
	defer stop()
	if err := b.discover(ctx, ready); err != nil {
		return err
	}
	return b.RunReport(ctx, b.overhead, b.throughput, b.isolation, b.growth)
}

// startServer runs this program with the subcommand that serves the extensions.
func startServer(ctx context.Context) (ready serving, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return ready, nil, err
	}
	cmd := exec.CommandContext(ctx, self, serveName)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return ready, nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return ready, nil, err
	}
	if err := cmd.Start(); err != nil {
		return ready, nil, err
	}
	stop = func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	}
	if err := json.NewDecoder(stdout).Decode(&ready); err != nil {
		stop()
		return ready, nil, err
	}
	return ready, stop, nil
}

// discover registers the extensions.
func (b *benchmark) discover(ctx context.Context, ready serving) (err error) {
	b.calls, err = hook.New(hook.Config{NamespaceLabels: func(context.Context, string) (labels.Set, error) { return nil, nil }})
	if err != nil {
		return err
	}
	b.calls.Prime()
	for i, url := range ready.URLs {
		c := &runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: extensionName(i), UID: types.UID(extensionName(i)), Generation: 1}}
		c.Spec.ClientConfig.URL, c.Spec.ClientConfig.CABundle = url, []byte(ready.CA)
		state, err := b.calls.Discover(ctx, c)
		if err != nil {
			return fmt.Errorf("discover %s: %w", c.Name, err)
		}
		if state.Problem != nil {
			return fmt.Errorf("discover %s: %w", c.Name, state.Problem)
		}
	}
	b.control, err = hook.NewConn(hook.Endpoint{URL: ready.URLs[0], CA: ready.CA}, hook.ConnOptions{})
	return err
}

func extensionName(i int) string { return fmt.Sprintf("ext-%d", i) }

// post sends a request to the server process and returns its statistics since the last request.
func (b *benchmark) post(ctx context.Context, path string) (s stats, err error) {
	response, err := b.control.Post(ctx, hook.WireRequest{Path: path})
	if err != nil {
		return s, fmt.Errorf("post %s: %w", path, err)
	}
	return s, json.Unmarshal(response.Body, &s)
}

// call calls an extension for a Cluster of ordinary size.
func (b *benchmark) call(ctx context.Context, extension int) error {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a-cluster", UID: "1d0dd4e3-f6f9-4d8a-93e7-1a4cf8ee4dc2"}}
	c.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"192.168.0.0/16"}
	c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.slipway.dev", Kind: "LocalCluster", Name: "a-cluster"}
	return b.calls.Call(ctx, c, "check."+extensionName(extension), hook.Invocation{
		Request: &hooksv1.BeforeClusterCreateRequest{Cluster: hook.ClusterForRequest(c)}, Response: &hooksv1.BeforeClusterCreateResponse{},
	})
}

// timedCalls calls an extension at an interval until a time, after a delay.
func (b *benchmark) timedCalls(ctx context.Context, extension int, delay, interval time.Duration, end time.Time) (times []time.Duration, err error) {
	time.Sleep(delay)
	for time.Now().Before(end) {
		start := time.Now()
		if err := b.call(ctx, extension); err != nil {
			return nil, err
		}
		times = append(times, time.Since(start))
		time.Sleep(interval - min(interval, time.Since(start)))
	}
	return times, nil
}

// overhead measures consecutive calls, without the extension's own time.
func (b *benchmark) overhead(ctx context.Context) error {
	for range 200 { // opens connections and fills caches
		if err := b.call(ctx, 0); err != nil {
			return err
		}
	}
	if _, err := b.post(ctx, statsPath); err != nil {
		return err
	}
	times, err := b.timedCalls(ctx, 0, 0, 0, time.Now().Add(b.phase))
	if err != nil {
		return err
	}
	own, err := b.post(ctx, statsPath)
	over := func(q float64) float64 { return harness.Milliseconds(max(0, harness.Quantile(times, q)-own.P50)) }
	b.Add(
		harness.NewFigure("hook.overhead.p50", "a call, over the extension's own time, p50 (ms)", over(0.5), harness.Count).AtMost(0.5),
		harness.NewFigure("hook.overhead.p99", "a call, over the extension's own time, p99 (ms)", over(0.99), harness.Count).AtMost(2),
		harness.NewFigure("hook.calls", "calls of one caller that were measured", float64(len(times)), harness.Count))
	return err
}

// throughput measures four callers on one core.
func (b *benchmark) throughput(ctx context.Context) error {
	before, err := b.post(ctx, statsPath)
	if err != nil {
		return err
	}
	cores := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(cores)
	cpu, start := processorTime(), time.Now()
	var counts [4]int
	err = harness.InParallel(ctx, len(counts), -1, func(ctx context.Context, i int) error {
		times, err := b.timedCalls(ctx, 0, 0, 0, start.Add(b.phase))
		counts[i] = len(times)
		return err
	})
	if err != nil {
		return err
	}
	took, used, calls := time.Since(start), processorTime()-cpu, float64(counts[0]+counts[1]+counts[2]+counts[3])
	after, err := b.post(ctx, statsPath)
	b.Add(
		harness.NewFigure("hook.throughput", "calls a second of four callers on one core", calls/took.Seconds(), harness.Count),
		harness.NewFigure("hook.cpu", "processor time of 1000 calls (s)", used.Seconds()/calls*1000, harness.Count).AtMost(1),
		harness.NewFigure("hook.connections", "connections made for all these calls", float64(after.Connections-before.Connections), harness.Count).AtMost(8))
	return err
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// isolation measures nine extensions while the tenth hangs, and before and after that. Other work on the machine would
// determine the p99 of all rounds together. Therefore each round is compared with itself, and the figures are medians.
func (b *benchmark) isolation(ctx context.Context) error {
	var healthy, hanging, ratios, noise []float64 // p99, ms
	var healthyTimes, hangingTimes []time.Duration
	for range 12 {
		var p99 [3]float64
		for i, path := range []string{openPath, hangPath, openPath} {
			if _, err := b.post(ctx, path); err != nil {
				return err
			}
			times, err := b.load(ctx, b.phase)
			if err != nil {
				return err
			}
			p99[i] = harness.Milliseconds(harness.Quantile(times, 0.99))
			if path == hangPath {
				hangingTimes = append(hangingTimes, times...)
			} else {
				healthyTimes = append(healthyTimes, times...)
			}
		}
		healthy, hanging = append(healthy, p99[0], p99[2]), append(hanging, p99[1])
		ratios = append(ratios, 2*p99[1]/(p99[0]+p99[2]))
		noise = append(noise, max(p99[0], p99[2])/min(p99[0], p99[2]))
	}
	figure := func(name, title string, value float64) harness.Figure {
		return harness.NewFigure("hook.isolation."+name, title, value, harness.Count)
	}
	b.Add(
		figure("p50", "nine extensions, all are well, p50 (ms)", harness.Milliseconds(harness.Quantile(healthyTimes, 0.5))),
		figure("p99", "nine extensions, all are well, p99 (ms)", harness.Median(healthy)),
		figure("p50.hanging", "nine extensions, the tenth hangs, p50 (ms)", harness.Milliseconds(harness.Quantile(hangingTimes, 0.5))),
		figure("p99.hanging", "nine extensions, the tenth hangs, p99 (ms)", harness.Median(hanging)),
		harness.NewMedian("hook.isolation.ratio", "p99 while the tenth hangs, of p99 just before and after", ratios, harness.Count).AtMost(1.1),
		harness.NewMedian("hook.isolation.noise", "p99 before and after, the larger of the smaller", noise, harness.Count))
	return nil
}

// load calls nine extensions 50 times a second each, and the tenth like a controller with four workers and retries. It
// returns the durations of the calls of the nine.
func (b *benchmark) load(ctx context.Context, d time.Duration) ([]time.Duration, error) {
	const interval, retry = 20 * time.Millisecond, 100 * time.Millisecond
	end := time.Now().Add(d)
	retrying, cancel := context.WithCancel(ctx)
	defer cancel()
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for time.Now().Before(end) {
				_ = b.call(retrying, extensions-1) // fails if it hangs
				time.Sleep(retry)
			}
		})
	}
	var times [extensions - 1][]time.Duration
	var callers errgroup.Group
	for i := range times {
		callers.Go(func() (err error) {
			times[i], err = b.timedCalls(ctx, i, time.Duration(rand.Int64N(int64(interval))), interval, end)
			return err
		})
	}
	err := callers.Wait()
	cancel()
	workers.Wait()
	return slices.Concat(times[:]...), err
}

// growth measures goroutines and memory while the tenth extension hangs.
func (b *benchmark) growth(ctx context.Context) error {
	if _, err := b.post(ctx, hangPath); err != nil {
		return err
	}
	step := min(b.length/2, 10*time.Second)
	if _, err := b.load(ctx, step); err != nil {
		return err
	}
	goroutines, heap := memoryAtRest()
	for end := time.Now().Add(b.length - step); time.Now().Before(end); {
		if _, err := b.load(ctx, step); err != nil {
			return err
		}
	}
	goroutinesAfter, heapAfter := memoryAtRest()
	b.Add(
		harness.NewFigure("hook.growth.time", "time with one extension that hangs (s)", b.length.Seconds(), harness.Count),
		harness.NewFigure("hook.growth.goroutines", "goroutines more than after the first seconds", float64(goroutinesAfter-goroutines), harness.Count).AtMost(5),
		harness.NewFigure("hook.growth.heap", "memory more than after the first seconds (KiB)", float64(heapAfter-heap)/1024, harness.Count).AtMost(1024))
	return nil
}

func memoryAtRest() (goroutines int, heap int64) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine(), int64(m.HeapAlloc)
}

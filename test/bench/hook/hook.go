// Package hook measures the cost of calls of Runtime Extensions, and the effect of an extension that hangs on the others. Ten
// extensions run in a separate process, and the benchmark calls them as the controllers do.
package hook

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/sdk/hooks"
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
	return cmd
}

func (b *benchmark) run(ctx context.Context) {
	if b.phase < time.Second || b.length < time.Second {
		harness.Failf("--phase and --time must be at least 1s")
	}
	ready, stop := startServer(ctx)
	defer stop()
	b.discover(ctx, ready)
	b.RunReport(ctx, b.overhead, b.throughput, b.isolation, b.growth)
}

// startServer runs this program with the subcommand that serves the extensions.
func startServer(ctx context.Context) (ready serving, stop func()) {
	cmd := exec.CommandContext(ctx, harness.Must(os.Executable()), serveName)
	cmd.Stderr = os.Stderr
	stdin, stdout := harness.Must(cmd.StdinPipe()), harness.Must(cmd.StdoutPipe())
	harness.Checkf(cmd.Start(), "start the extensions")
	stop = func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	}
	if err := json.NewDecoder(stdout).Decode(&ready); err != nil {
		stop()
		harness.Checkf(err, "start the extensions")
	}
	return ready, stop
}

// discover registers the extensions.
func (b *benchmark) discover(ctx context.Context, ready serving) {
	noLabels := func(context.Context, string) (labels.Set, error) { return nil, nil }
	b.calls = harness.Must(hook.New(hook.Config{NamespaceLabels: noLabels}))
	b.calls.Prime()
	for i, url := range ready.URLs {
		c := &runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: extensionName(i), UID: types.UID(extensionName(i)), Generation: 1}}
		c.Spec.ClientConfig.URL, c.Spec.ClientConfig.CABundle = url, []byte(ready.CA)
		if state := harness.Must(b.calls.Discover(ctx, c)); state.Problem != nil {
			harness.Checkf(state.Problem, "discover %s", c.Name)
		}
	}
	b.control = harness.Must(hook.NewConn(hook.Endpoint{URL: ready.URLs[0], CA: ready.CA}, nil))
}

func extensionName(i int) string { return fmt.Sprintf("ext-%d", i) }

// post sends a request to the server process and returns its statistics since the last request.
func (b *benchmark) post(ctx context.Context, path string) (s stats) {
	response, err := b.control.Post(ctx, hook.WireRequest{Path: path})
	harness.Checkf(err, "post %s", path)
	harness.Check(json.Unmarshal(response, &s))
	return s
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
func (b *benchmark) timedCalls(ctx context.Context, extension int, delay, interval time.Duration, end time.Time) (times []time.Duration) {
	time.Sleep(delay)
	for time.Now().Before(end) {
		start := time.Now()
		harness.Check(b.call(ctx, extension))
		times = append(times, time.Since(start))
		time.Sleep(interval - min(interval, time.Since(start)))
	}
	return times
}

// overhead measures consecutive calls, without the extension's own time.
func (b *benchmark) overhead(ctx context.Context) {
	for range 200 { // opens connections and fills caches
		harness.Check(b.call(ctx, 0))
	}
	b.post(ctx, statsPath)
	times := b.timedCalls(ctx, 0, 0, 0, time.Now().Add(b.phase))
	own := b.post(ctx, statsPath).P50
	over := func(q float64) float64 { return harness.Milliseconds(max(0, harness.Quantile(times, q)-own)) }
	b.Add(
		harness.NewFigure("hook.overhead.p50", "a call, over the extension's own time, p50 (ms)", over(0.5), harness.Count).AtMost(0.5),
		harness.NewFigure("hook.overhead.p99", "a call, over the extension's own time, p99 (ms)", over(0.99), harness.Count).AtMost(2),
		harness.NewFigure("hook.calls", "calls of one caller that were measured", float64(len(times)), harness.Count))
}

// throughput measures four callers on one core.
func (b *benchmark) throughput(ctx context.Context) {
	before := b.post(ctx, statsPath)
	cores := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(cores)
	cpu, start := processorTime(), time.Now()
	var counts [4]int
	harness.InParallel(ctx, len(counts), -1, func(ctx context.Context, i int) {
		counts[i] = len(b.timedCalls(ctx, 0, 0, 0, start.Add(b.phase)))
	})
	took, used, calls := time.Since(start), processorTime()-cpu, float64(counts[0]+counts[1]+counts[2]+counts[3])
	connections := b.post(ctx, statsPath).Connections - before.Connections
	b.Add(
		harness.NewFigure("hook.throughput", "calls a second of four callers on one core", calls/took.Seconds(), harness.Count),
		harness.NewFigure("hook.cpu", "processor time of 1000 calls (s)", used.Seconds()/calls*1000, harness.Count).AtMost(1),
		harness.NewFigure("hook.connections", "connections made for all these calls", float64(connections), harness.Count).AtMost(8))
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
func (b *benchmark) isolation(ctx context.Context) {
	var healthy, hanging, ratios, noise []float64 // p99, ms
	var healthyTimes, hangingTimes []time.Duration
	for range 12 {
		var p99 [3]float64
		for i, path := range []string{openPath, hangPath, openPath} {
			b.post(ctx, path)
			times := b.load(ctx, b.phase)
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
}

// load calls nine extensions 50 times a second each, and the tenth like a controller with four workers and retries. It
// returns the durations of the calls of the nine.
func (b *benchmark) load(ctx context.Context, d time.Duration) []time.Duration {
	const interval, retry = 20 * time.Millisecond, 100 * time.Millisecond
	end := time.Now().Add(d)
	retrying, cancel := context.WithCancel(ctx)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer cancel()
	for range 4 {
		workers.Go(func() {
			for time.Now().Before(end) {
				_ = b.call(retrying, extensions-1) // fails if it hangs
				time.Sleep(retry)
			}
		})
	}
	var times [extensions - 1][]time.Duration
	harness.InParallel(ctx, len(times), -1, func(ctx context.Context, i int) {
		times[i] = b.timedCalls(ctx, i, time.Duration(rand.Int64N(int64(interval))), interval, end)
	})
	return slices.Concat(times[:]...)
}

// growth measures goroutines and memory while the tenth extension hangs.
func (b *benchmark) growth(ctx context.Context) {
	b.post(ctx, hangPath)
	step := min(b.length/2, 10*time.Second)
	b.load(ctx, step)
	goroutines, heap := memoryAtRest()
	for end := time.Now().Add(b.length - step); time.Now().Before(end); {
		b.load(ctx, step)
	}
	goroutinesAfter, heapAfter := memoryAtRest()
	figure := func(name, title string, value float64) harness.Figure {
		return harness.NewFigure("hook.growth."+name, title, value, harness.Count)
	}
	b.Add(
		figure("time", "time with one extension that hangs (s)", b.length.Seconds()),
		figure("goroutines", "goroutines more than after the first seconds", float64(goroutinesAfter-goroutines)).AtMost(5),
		figure("heap", "memory more than after the first seconds (KiB)", float64(heapAfter-heap)/1024).AtMost(1024))
}

func memoryAtRest() (goroutines int, heap int64) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine(), int64(m.HeapAlloc)
}

// serveName is the subcommand of the server process.
const serveName = "serve-extensions"

// Paths of the server process. All respond with stats.
const (
	statsPath = "/stats"
	hangPath  = "/hang" // the last extension hangs
	openPath  = "/open" // all extensions respond
)

// ServeCommand returns the hidden subcommand that serves the extensions until standard input is closed.
func ServeCommand() *cobra.Command {
	return &cobra.Command{Use: serveName, Hidden: true, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return harness.Try(func() {
			serve(cmd.OutOrStdout())
			harness.Must(io.Copy(io.Discard, os.Stdin))
		})
	}}
}

// serving is printed when the extensions are ready.
type serving struct {
	URLs []string
	CA   string
}

// stats are the calls since the last stats.
type stats struct {
	Calls       int
	P50         time.Duration // of the extension's own time
	Connections int           // since the start
}

// server implements all extensions. They respond immediately, but the last one does not respond at all while it hangs.
type server struct {
	hanging     atomic.Bool
	mu          sync.Mutex
	times       []time.Duration
	connections int
}

func serve(out io.Writer) {
	s, ready := &server{}, serving{}
	for i := range extensions {
		h := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serveExtension(w, r, i) }))
		h.Config.ConnState = s.countConnection
		h.StartTLS()
		ready.URLs = append(ready.URLs, h.URL)
		ready.CA = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})) // the same for all
	}
	harness.Check(json.NewEncoder(out).Encode(ready))
}

func (s *server) countConnection(_ net.Conn, state http.ConnState) {
	if state == http.StateNew {
		s.mu.Lock()
		s.connections++
		s.mu.Unlock()
	}
}

// serveExtension records its own time for calls of the hook.
func (s *server) serveExtension(w http.ResponseWriter, r *http.Request, extension int) {
	start := time.Now()
	w.Header().Set("Content-Type", "application/json")
	version := hooks.Discovery.APIVersion()
	switch path := r.URL.Path; {
	case path == statsPath, path == hangPath, path == openPath:
		_ = json.NewEncoder(w).Encode(s.control(path))
	case extension == extensions-1 && s.hanging.Load():
		<-r.Context().Done()
	case path == hooks.Discovery.Path(""):
		_, _ = fmt.Fprintf(w, `{"apiVersion":%q,"kind":"DiscoveryResponse","status":"Success","handlers":[{"name":"check","timeoutSeconds":2,`+
			`"requestHook":{"apiVersion":%q,"hook":"BeforeClusterCreate"}}]}`, version, version)
	case strings.HasSuffix(path, "/check"):
		request := &hooksv1.BeforeClusterCreateRequest{}
		if err := json.NewDecoder(r.Body).Decode(request); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = fmt.Fprintf(w, `{"apiVersion":%q,"kind":"BeforeClusterCreateResponse","status":"Success","retryAfterSeconds":0}`, request.APIVersion)
		s.mu.Lock()
		s.times = append(s.times, time.Since(start))
		s.mu.Unlock()
	default:
		http.NotFound(w, r)
	}
}

// control changes whether the last extension hangs and returns the statistics.
func (s *server) control(path string) stats {
	if path != statsPath {
		s.hanging.Store(path == hangPath)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := stats{Calls: len(s.times), P50: harness.Quantile(s.times, 0.5), Connections: s.connections}
	s.times = nil
	return out
}

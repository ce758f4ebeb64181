package simulated_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// cpu is what this process has used so far.
func cpu(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// heap is what is in use after a collection, goroutine stacks included.
func heap() uint64 {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// BenchmarkClusters starts clusters with one Node each, and reports what the first and each other costs: CPU in ms, memory in
// kB and goroutines, in this process without any client connected. CLUSTERS says how many; default 100.
func BenchmarkClusters(b *testing.B) {
	n := 100
	if text := os.Getenv("CLUSTERS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		w := newWorld(b, b.TempDir())
		none, t0 := heap(), cpu(b)
		w.start(b, "first")
		b.ReportMetric(float64((cpu(b) - t0).Milliseconds()), "first-ms")
		memory, used, goroutines := heap(), cpu(b), runtime.NumGoroutine()
		b.ReportMetric(float64(memory-none)/1000, "first-kB")
		for i := range n {
			name := fmt.Sprintf("c%d", i)
			spec := w.spec(b, name)
			if err := w.Start(name, spec); err != nil {
				b.Fatal(err)
			}
			ctx, client := w.Workload(context.Background(), spec.Cluster)
			if _, err := client.CoreV1().Nodes().Create(ctx, node("n1"), metav1.CreateOptions{}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64((cpu(b)-used).Microseconds())/1000/float64(n), "ms/cluster")
		b.ReportMetric(float64(heap()-memory)/1000/float64(n), "kB/cluster")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/float64(n), "goroutines/cluster")
		w.end()
	}
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/test/bench/latency"
	"github.com/slipwayhq/slipway/test/bench/result"
)

// extensions is how many there are; the last is the one that hangs.
const extensions = 10

// bench is the extensions, and the way to call them.
type bench struct {
	options
	calls *hook.Extensions
	gate  *gate
	stats func(context.Context) (stats, error)
}

func measure(ctx context.Context, o options) ([]result.Figure, error) {
	ready, stop, err := startServer(ctx)
	if err != nil {
		return nil, fmt.Errorf("start the extensions: %w", err)
	}
	defer stop()
	b := &bench{options: o}
	if err := b.prepare(ctx, ready); err != nil {
		return nil, err
	}
	var out []result.Figure
	for _, part := range []func(context.Context) ([]result.Figure, error){b.overhead, b.throughput, b.isolation, b.growth} {
		figures, err := part(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, figures...)
	}
	return out, nil
}

// startServer starts this program again, as the extensions.
func startServer(ctx context.Context) (served, func(), error) {
	var ready served
	self, err := os.Executable()
	if err != nil {
		return ready, nil, err
	}
	cmd := exec.CommandContext(ctx, self, "-serve", fmt.Sprint(extensions))
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
	stop := func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	}
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if err != nil {
		stop()
	}
	return ready, stop, err
}

func (b *bench) prepare(ctx context.Context, ready served) error {
	var err error
	b.calls, err = hook.New(hook.Config{
		NamespaceLabels: func(context.Context, string) (labels.Set, error) { return nil, nil },
	})
	if err != nil {
		return err
	}
	b.calls.Prime()
	if b.gate, err = newGate(ready.Addresses[extensions-1]); err != nil {
		return err
	}
	ready.Addresses[extensions-1] = b.gate.listener.Addr().String()
	for i, address := range ready.Addresses {
		c := &runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: name(i), UID: types.UID(name(i)),
			Generation: 1}}
		c.Spec.ClientConfig.URL, c.Spec.ClientConfig.CABundle = "https://"+address, []byte(ready.CA)
		state, err := b.calls.Discover(ctx, c)
		if err != nil {
			return err
		}
		if state.Problem != nil {
			return fmt.Errorf("discover %s: %w", c.Name, state.Problem)
		}
	}
	conn, err := hook.NewConn(hook.Endpoint{URL: "https://" + ready.Addresses[0], CA: ready.CA}, hook.ConnOptions{})
	b.stats = func(ctx context.Context) (stats, error) {
		var s stats
		answer, err := conn.Post(ctx, hook.WireRequest{Path: statsPath})
		if err != nil {
			return s, err
		}
		return s, json.Unmarshal(answer.Body, &s)
	}
	return err
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }

func name(i int) string { return fmt.Sprintf("ext-%d", i) }

// call calls the handler of an extension for a Cluster of an ordinary size.
func (b *bench) call(ctx context.Context, extension int) error {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a-cluster",
		UID: "1d0dd4e3-f6f9-4d8a-93e7-1a4cf8ee4dc2"}}
	c.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"192.168.0.0/16"}
	c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.slipway.dev",
		Kind: "LocalCluster", Name: "a-cluster"}
	return b.calls.Call(ctx, c, "check."+name(extension), hook.Invocation{
		Request:  &hooksv1.BeforeClusterCreateRequest{Cluster: hook.ClusterForRequest(c)},
		Response: &hooksv1.BeforeClusterCreateResponse{},
	})
}

// overhead measures one call after the other: what is left of the time of a call when that of the extension is taken away.
func (b *bench) overhead(ctx context.Context) ([]result.Figure, error) {
	for range 200 { // connections are made, caches are warm
		if err := b.call(ctx, 0); err != nil {
			return nil, err
		}
	}
	if _, err := b.stats(ctx); err != nil {
		return nil, err
	}
	var took []time.Duration
	for end := time.Now().Add(b.phase); time.Now().Before(end); {
		began := time.Now()
		if err := b.call(ctx, 0); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	own, err := b.stats(ctx)
	if err != nil {
		return nil, err
	}
	return []result.Figure{
		result.Figure{Name: "hook.overhead.p50", Title: "a call, over the extension's own time, p50 (ms)",
			Value: ms(max(0, latency.Quantile(took, 0.5)-own.P50))}.AtMost(0.5),
		result.Figure{Name: "hook.overhead.p99", Title: "a call, over the extension's own time, p99 (ms)",
			Value: ms(max(0, latency.Quantile(took, 0.99)-own.P50))}.AtMost(2),
		{Name: "hook.calls", Title: "calls of one caller that were measured", Value: float64(len(took))},
	}, nil
}

// throughput calls as fast as one core allows.
func (b *bench) throughput(ctx context.Context) ([]result.Figure, error) {
	before, err := b.stats(ctx)
	if err != nil {
		return nil, err
	}
	cores := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(cores)
	cpu := processorTime()
	began := time.Now()
	var wg sync.WaitGroup
	counts, failures := make([]int, 4), make([]error, 4)
	for i := range counts {
		wg.Go(func() {
			for time.Since(began) < b.phase && failures[i] == nil {
				failures[i] = b.call(ctx, 0)
				counts[i]++
			}
		})
	}
	wg.Wait()
	calls := 0
	for i := range counts {
		if failures[i] != nil {
			return nil, failures[i]
		}
		calls += counts[i]
	}
	took, used := time.Since(began), processorTime()-cpu
	after, err := b.stats(ctx)
	return []result.Figure{
		{Name: "hook.throughput", Title: "calls a second of four callers on one core",
			Value: float64(calls) / took.Seconds()},
		result.Figure{Name: "hook.cpu", Title: "processor time of 1000 calls (s)",
			Value: used.Seconds() / float64(calls) * 1000}.AtMost(1),
		result.Figure{Name: "hook.connections", Title: "connections made for all these calls",
			Value: float64(after.Connections - before.Connections)}.AtMost(8),
	}, err
}

func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

package remote

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/remote/answers"
	"github.com/slipwayhq/slipway/internal/remote/endpoint"
)

// Config says how to connect. Only Management is required.
type Config struct {
	// Management reads Clusters and kubeconfig Secrets of the management cluster.
	Management client.Reader
	// Scheme holds the workload cluster types. Default: the client-go scheme.
	Scheme *runtime.Scheme
	// Timing holds every duration and threshold; zero fields take their defaults.
	Timing Timing
	// QPS and Burst limit all calls to one workload cluster together.
	// Defaults: 100 and 200.
	QPS   float32
	Burst int
	// Concurrency is the number of clusters probed or connected at once.
	// Default: 100.
	Concurrency int
	// UserAgent is sent to workload clusters. Default: "slipway-remote".
	UserAgent string
	// Policy says which addresses and proxies kubeconfig Secrets may name. Default: [policy.Default].
	Policy policy.Configuration
	// Self is the Pod this process runs in; nil outside of a Pod.
	Self *endpoint.Self
	// Registerer receives the metrics. Nil: no metrics are registered.
	Registerer prometheus.Registerer
	// Watched limits which objects of a kind are watched, and so kept; kinds that are not in it are watched as a whole.
	// They have to be kinds that are always read live, without a transformation of their own.
	Watched map[client.Object]cache.ByObject
	// Memory is how much this process may use, in bytes. The accounts of answers are shares of it. Default: 1 GiB.
	Memory int64
	// Crashes, where set, records what is being decoded, and which clusters crashed this process before.
	Crashes Crashes
	// IsOurs, where set, reports whether Slipway chose the address (host and port) of the API of a Cluster. Then a problem
	// with it is described in full.
	IsOurs func(ctx context.Context, cluster *clusterv1.Cluster, address string) bool
	// Clock gives the time. Default: the wall clock.
	Clock clock.PassiveClock
}

// Crashes is the record of a process that is restarted when it crashes. Of what it was decoding at that moment it knows the
// cluster, which the next process does not connect to for a while.
type Crashes interface {
	// Decoding is called when a large answer of a cluster is about to be decoded.
	Decoding(cluster client.ObjectKey) answers.Decoding
	// SuspendedUntil returns the time before which the cluster is not connected; zero: it may be.
	SuspendedUntil(cluster client.ObjectKey) time.Time
}

// Timing holds the durations and thresholds of a connection.
type Timing struct {
	// ProbeInterval lies between two probes of a connection. Default: 10 s.
	ProbeInterval time.Duration
	// ProbeTimeout ends one probe. Default: 5 s.
	ProbeTimeout time.Duration
	// FailureThreshold is the number of failed probes in a row after which a
	// connection is given up. Default: 5.
	FailureThreshold int
	// RetryMin and RetryMax bound the wait between two attempts to connect.
	// Defaults: 250 ms and 30 s.
	RetryMin, RetryMax time.Duration
	// CallTimeout ends one call to a workload cluster (watches excepted), and one
	// wait for a cache to fill. Default: 10 s.
	CallTimeout time.Duration
	// SyncTimeout is how long a cache may take to fill before the connection is
	// replaced. Default: 5 min.
	SyncTimeout time.Duration
	// PauseMin and PauseMax bound the wait after a connection whose answers took too much memory. It doubles each time.
	// Defaults: 1 min and 1 h.
	PauseMin, PauseMax time.Duration
}

func (t Timing) withDefaults() Timing {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&t.ProbeInterval, 10*time.Second)
	def(&t.ProbeTimeout, 5*time.Second)
	def(&t.RetryMin, 250*time.Millisecond)
	def(&t.RetryMax, 30*time.Second)
	def(&t.CallTimeout, 10*time.Second)
	def(&t.SyncTimeout, 5*time.Minute)
	def(&t.PauseMin, time.Minute)
	def(&t.PauseMax, time.Hour)
	if t.FailureThreshold == 0 {
		t.FailureThreshold = 5
	}
	return t
}

func (c Config) withDefaults() Config {
	c.Timing = c.Timing.withDefaults()
	if c.Scheme == nil {
		c.Scheme = scheme.Scheme
	}
	if c.QPS == 0 {
		c.QPS = 100
	}
	if c.Burst == 0 {
		c.Burst = 200
	}
	if c.Concurrency == 0 {
		c.Concurrency = 100
	}
	if c.Policy.Kind == "" { // one that was parsed has it
		c.Policy = policy.Default()
	}
	if c.UserAgent == "" {
		c.UserAgent = "slipway-remote"
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	return c
}

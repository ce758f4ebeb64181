package workload

import (
	"cmp"
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
)

// Config configures the connections. The manager sets it from its flags, its configuration and its environment. Only
// Management is required.
type Config struct {
	// Management reads Clusters and kubeconfig Secrets in the management cluster.
	Management client.Reader
	// Scheme has the types of the workload clusters. Default: the client-go scheme.
	Scheme *runtime.Scheme
	// Timing has all durations and thresholds; zero fields default individually.
	Timing Timing
	// QPS and Burst limit all calls to one workload cluster together. Defaults: 100 and 200.
	QPS   float32
	Burst int
	// Concurrency is the number of clusters probed or connected at once.
	// Default: 100.
	Concurrency int
	// UserAgent is sent to workload clusters. Default: "slipway-remote".
	UserAgent string
	// Policy restricts the addresses and proxies in kubeconfig Secrets. Default: [policy.Default].
	Policy policy.Configuration
	// Self is the Pod in which this process runs; nil outside a Pod.
	Self *SelfAddresses
	// Registerer receives the metrics. If nil, no metrics are registered.
	Registerer prometheus.Registerer
	// Watched limits which objects of a kind are watched and cached; other kinds are watched as a whole. It may only
	// contain kinds that are always read live, without a Transform of their own.
	Watched map[client.Object]cache.ByObject
	// Memory is the amount of memory that this process may use, in bytes. The limits for responses are fractions of it.
	// Default: 1 GiB.
	Memory int64
	// Crashes, if set, records what is being decoded, and which clusters crashed this process before.
	Crashes Crashes
	// IsManagedAddress, if set, reports whether Slipway chose the address (host and port) of a Cluster's API server. If
	// so, connection problems are described in detail.
	IsManagedAddress func(ctx context.Context, cluster *clusterv1.Cluster, address string) bool
	// Clock provides the time. Default: the wall clock.
	Clock clock.PassiveClock
}

// Crashes records which cluster's response is being decoded, so that a process that is restarted after a crash can
// suspend the connection to that cluster for a while. The process that supervises the manager provides it.
type Crashes interface {
	// Decoding is called when a large response from a cluster is about to be decoded.
	Decoding(cluster client.ObjectKey) DecodingMemory
	// SuspendedUntil returns the time until which the connection to the cluster is suspended, or zero if it is not.
	SuspendedUntil(cluster client.ObjectKey) time.Time
}

// Timing configures the durations and thresholds of a connection. The manager uses the defaults, and tests shorten
// them.
type Timing struct {
	// ProbeInterval is the time between two probes of a connection. Default: 10 s.
	ProbeInterval time.Duration
	// ProbeTimeout limits one probe. Default: 5 s.
	ProbeTimeout time.Duration
	// FailureThreshold is the number of consecutive failed probes after which a connection is closed. Default: 5.
	FailureThreshold int
	// RetryMin and RetryMax are the minimum and maximum backoff between two connection attempts. Defaults: 250 ms and
	// 30 s.
	RetryMin, RetryMax time.Duration
	// CallTimeout limits one call to a workload cluster (except watches), and one wait for a cache to sync. Default: 10
	// s.
	CallTimeout time.Duration
	// SyncTimeout is how long a cache may take to sync before the connection is replaced. Default: 5 min.
	SyncTimeout time.Duration
	// PauseMin and PauseMax are the minimum and maximum pause after a connection whose responses used too much memory.
	// The pause doubles each time. Defaults: 1 min and 1 h.
	PauseMin, PauseMax time.Duration
}

func (t Timing) withDefaults() Timing {
	t.ProbeInterval = cmp.Or(t.ProbeInterval, 10*time.Second)
	t.ProbeTimeout = cmp.Or(t.ProbeTimeout, 5*time.Second)
	t.FailureThreshold = cmp.Or(t.FailureThreshold, 5)
	t.RetryMin = cmp.Or(t.RetryMin, 250*time.Millisecond)
	t.RetryMax = cmp.Or(t.RetryMax, 30*time.Second)
	t.CallTimeout = cmp.Or(t.CallTimeout, 10*time.Second)
	t.SyncTimeout = cmp.Or(t.SyncTimeout, 5*time.Minute)
	t.PauseMin = cmp.Or(t.PauseMin, time.Minute)
	t.PauseMax = cmp.Or(t.PauseMax, time.Hour)
	return t
}

func (c Config) withDefaults() Config {
	c.Timing = c.Timing.withDefaults()
	c.Scheme = cmp.Or(c.Scheme, scheme.Scheme)
	c.QPS, c.Burst = cmp.Or(c.QPS, 100), cmp.Or(c.Burst, 200)
	c.Concurrency = cmp.Or(c.Concurrency, 100)
	c.UserAgent = cmp.Or(c.UserAgent, "slipway-remote")
	c.Clock = cmp.Or[clock.PassiveClock](c.Clock, clock.RealClock{})
	if c.Policy.Kind == "" { // set in every parsed Configuration
		c.Policy = policy.Default()
	}
	return c
}

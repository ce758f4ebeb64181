package workload

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/workload/portforward"
)

// ErrNotConnected means that there is currently no connection to the workload cluster. It is of kind fault.Unreachable:
// a controller waits until Changed enqueues its object, and does not count it as a failure. Use errors.Is.
var ErrNotConnected error = notConnected("the workload cluster is not connected")

func notConnected(message string) *fault.Fault {
	return fault.New(fault.Unreachable, "NotConnected", "%s", message)
}

// Health is the state of a workload cluster's connection. Controllers observe it and derive conditions and waits from
// it.
type Health struct {
	// Connected reports whether Client would succeed; Since is when that last changed, or when the cluster was first
	// observed.
	Connected bool
	Since     time.Time
	// LastProbeSuccess is the time of the last successful probe; zero if there was none since this process started.
	LastProbeSuccess time.Time
	// ConsecutiveFailures is the number of consecutive failed probes and connection attempts.
	ConsecutiveFailures int
	// Problem is the reason of the last failure, for use in a condition's message.
	Problem string
	// NodesRead is when the cached Nodes were last known to be current; zero if they have not been needed yet.
	NodesRead time.Time
}

// Clusters holds the connections to all workload clusters. The manager has one, which it creates with New and adds to
// itself with SetupWithManager; controllers use it as a [Workloads]. Its methods may be called at any time and from any
// goroutine.
type Clusters struct {
	cfg     Config
	log     logr.Logger
	metrics *metrics
	// pool limits the calls to slow clusters.
	pool *slowPool
	// accounts track the memory that responses of all clusters use.
	accounts *memoryAccounts
	// kinds are the kinds that all connections map without discovery.
	kinds meta.RESTMapper
	// life ends with the Runnable; the watches of all connections end with it.
	life context.Context
	end  context.CancelFunc

	mu      sync.RWMutex
	entries map[client.ObjectKey]*entry
	subs    map[string][]subscriber
}

// entry is the state of one cluster. Its state and connection are written by Reconcile only, which never runs
// concurrently for the same cluster.
type entry struct {
	// limiter applies to all calls to the cluster, over this connection and others.
	limiter *limiter
	fresh   freshness

	mu    sync.RWMutex
	state connectionState
	conn  *connection
	// dirty is set when the kubeconfig Secret may have changed since it was last read.
	dirty bool
}

// New returns a Clusters that opens no connection before it is started. It fails if the metrics are already registered.
// The manager calls it at its start.
func New(cfg Config) (*Clusters, error) {
	if cfg.Management == nil {
		return nil, errors.New("workload: Config.Management is not set")
	}
	cfg = cfg.withDefaults()
	m, err := newMetrics(cfg.Registerer)
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.Background())
	return &Clusters{
		cfg: cfg, log: logr.Discard(), metrics: m, life: life, end: end,
		entries: map[client.ObjectKey]*entry{}, subs: map[string][]subscriber{}, pool: newSlowPool(), kinds: servedKinds(),
		accounts: newAccounts(cfg.Memory),
	}, nil
}

// Start implements manager.Runnable: it blocks until ctx is done, then closes all connections.
func (c *Clusters) Start(ctx context.Context) error {
	<-ctx.Done()
	c.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.entries {
		e.mu.Lock()
		if e.conn != nil {
			e.conn.close()
			e.conn = nil
		}
		e.state.connected = false
		e.mu.Unlock()
	}
	return nil
}

// Client returns a client for the workload cluster. It reads watched kinds from a cache and all other kinds live;
// ConfigMaps, Secrets, Pods, DaemonSets, Deployments, PersistentVolumes and VolumeAttachments are always read live. It
// returns ErrNotConnected if there is no connection. Calls of the client fail with [errBusy] if too many calls wait for
// a slow cluster. The client must not be used for longer than one reconciliation.
func (c *Clusters) Client(_ context.Context, key client.ObjectKey) (client.Client, error) {
	conn, err := c.connection(key)
	if err != nil {
		return nil, err
	}
	return conn.client, nil
}

// Nodes returns the Nodes with the provider ID, from an indexed cache; the first call for a cluster starts the watch of
// its Nodes. It returns ErrNotConnected if there is no connection, or if the cache has not synced after a short wait;
// Changed enqueues when it has. The Machine controller finds the Node of its Machine with it.
func (c *Clusters) Nodes(ctx context.Context, key client.ObjectKey, providerID string) ([]corev1.Node, error) {
	conn, err := c.connection(key)
	if err != nil {
		return nil, err
	}
	conn.fresh.Begin(c.cfg.Clock.Now())
	if err := c.indexNodes(ctx, key, conn); err != nil {
		return nil, err
	}
	if !conn.nodesFilled(ctx) {
		return nil, notConnected("the cache of the workload cluster is not synced yet")
	}
	var nodes corev1.NodeList
	if err := conn.reads.List(ctx, &nodes, client.MatchingFields{providerIDField: providerID}); err != nil {
		return nil, fmt.Errorf("list the Nodes with provider ID %q: %w", providerID, err)
	}
	return nodes.Items, nil
}

// Health returns the state of the cluster's connection, or the zero value for a cluster that has not been observed yet.
func (c *Clusters) Health(key client.ObjectKey) Health {
	e := c.lookup(key)
	if e == nil {
		return Health{}
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	return Health{
		Connected: e.state.connected, Since: e.state.since, LastProbeSuccess: e.state.lastSuccess,
		ConsecutiveFailures: e.state.failures, Problem: e.state.problem,
		NodesRead: e.fresh.At(c.cfg.Clock.Now(), e.conn != nil && e.conn.filled.Load()),
	}
}

func (c *Clusters) lookup(key client.ObjectKey) *entry {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.entries[key]
}

// entry returns the cluster's entry, and creates it if necessary.
func (c *Clusters) entry(key client.ObjectKey) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	if !ok {
		e = &entry{limiter: newLimiter(c.pool), state: connectionState{since: c.cfg.Clock.Now()}}
		c.entries[key] = e
		c.pool.latencies.add(e.limiter)
	}
	return e
}

func (c *Clusters) connection(key client.ObjectKey) (*connection, error) {
	e := c.lookup(key)
	if e == nil {
		return nil, ErrNotConnected
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.conn == nil {
		if e.state.problem != "" {
			return nil, notConnected("the workload cluster is not connected: " + e.state.problem)
		}
		return nil, ErrNotConnected
	}
	return e.conn, nil
}

// GraceLeft returns how long the connection still counts as healthy although the cluster does not respond. It is zero
// if the cluster responds, or if the grace period since its last response is over. wasHealthy reports whether the
// connection counted as healthy before this process started; for such a cluster the grace period starts again with the
// process. The Cluster, Machine and KubeadmControlPlane controllers compute conditions with it.
func (h Health) GraceLeft(now time.Time, grace time.Duration, wasHealthy bool) time.Duration {
	since := h.LastProbeSuccess
	switch {
	case since.IsZero() && !wasHealthy, !since.IsZero() && h.ConsecutiveFailures == 0:
		return 0
	case since.IsZero() && h.Since.IsZero():
		return grace
	case since.IsZero():
		since = h.Since
	}
	return max(0, grace-now.Sub(since))
}

// NodesGraceLeft returns how long the last observed Nodes remain valid although they cannot be read, while probes of
// the API server succeed. The Machine controller computes the conditions of Nodes with it.
func (h Health) NodesGraceLeft(now time.Time, grace time.Duration) time.Duration {
	if h.NodesRead.IsZero() {
		return grace
	}
	return max(0, grace-now.Sub(h.NodesRead))
}

// IsHealthy reports whether the cluster's last probe succeeded. The Machine, Cluster and KubeadmControlPlane
// controllers check it.
func (h Health) IsHealthy() bool { return h.ConsecutiveFailures == 0 && !h.LastProbeSuccess.IsZero() }

// Forward connects to a port of a Pod in the workload cluster, through its API server. It returns ErrNotConnected if
// there is no connection. The limits for calls do not apply to it. The KubeadmControlPlane controller and the
// controller of etcd snapshots call it.
func (c *Clusters) Forward(ctx context.Context, key client.ObjectKey, to portforward.Target) (net.Conn, error) {
	conn, err := c.connection(key)
	if err != nil {
		return nil, err
	}
	return portforward.Dial(ctx, conn.upgrades, conn.address, to)
}

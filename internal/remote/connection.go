package remote

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/kubeconfig"
	"github.com/slipwayhq/slipway/internal/remote/answers"
	"github.com/slipwayhq/slipway/internal/remote/portforward"
)

// connection is one open connection to a workload cluster. It is created by
// dial, is of no use after close, and is never changed into another one.
type connection struct {
	address string
	http    *http.Client
	sockets *http.Transport
	// upgrades is for connections to Pods.
	upgrades http.RoundTripper
	cache    cache.Cache
	client   client.Client
	limiter  *limiter
	rate     *rate.Limiter
	stop     context.CancelFunc
	// ended is closed when the connection ends.
	ended <-chan struct{}

	// reads reads from the cache what is watched, and the rest live.
	reads client.Reader
	// watches are the watchKeys that have a handler.
	watches sync.Map
	// nodes is the cache of Nodes with the index over provider IDs; nil: not needed yet.
	nodes atomic.Pointer[filling]

	// changing is held while what is watched is changed, which takes calls.
	changing chan struct{}

	mu sync.Mutex
	// informers are those started, with the time of it.
	informers map[cache.Informer]time.Time
}

// filling is an informer, and when it was started.
type filling struct {
	cache.Informer
	since time.Time
}

// dial opens a connection: it reads the kubeconfig, gets the root of the
// API once, and prepares client and cache; it starts no watch.
func (c *Clusters) dial(ctx context.Context, secret []byte, l *limiter) (*connection, error) {
	cfg, err := kubeconfig.Parse(secret, c.cfg.Policy)
	if err != nil {
		return nil, err
	}
	conn, err := c.open(ctx, cfg, l)
	if err != nil || c.cfg.Self == nil || cfg.Host == c.cfg.Self.Host {
		return conn, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timing.ProbeTimeout)
	defer cancel()
	if !c.cfg.Self.runsOn(ctx, conn.client) {
		return conn, nil
	}
	conn.close()
	return c.open(ctx, c.cfg.Self.shortcut(cfg), l)
}

// open does dial's work for one address.
func (c *Clusters) open(ctx context.Context, cfg *rest.Config, l *limiter) (*connection, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = c.cfg.UserAgent
	calls := rate.NewLimiter(rate.Limit(c.cfg.QPS), c.cfg.Burst)
	cfg.RateLimiter = sharedLimiter{calls}
	address, err := probeURL(cfg)
	if err != nil {
		return nil, err
	}
	sockets, err := newTransport(cfg)
	if err != nil {
		return nil, err
	}
	wrapped, err := rest.HTTPWrappersForConfig(cfg, answers.Bound(sockets, answers.DefaultLimits()))
	if err != nil {
		return nil, fmt.Errorf("the credentials of the kubeconfig cannot be used: %w", err)
	}
	conn := &connection{
		address: address, sockets: sockets, http: &http.Client{Transport: wrapped, CheckRedirect: noRedirect},
		informers: map[cache.Informer]time.Time{}, changing: make(chan struct{}, 1), stop: func() {},
		limiter: l, rate: calls,
	}
	if conn.upgrades, err = portforward.Transport(cfg, sockets); err != nil {
		return nil, err
	}
	if err := conn.probe(ctx, c.cfg.Timing.ProbeTimeout); err != nil {
		conn.close()
		return nil, err
	}
	if err := c.buildClients(conn, cfg); err != nil {
		conn.close()
		return nil, err
	}
	return conn, nil
}

// buildClients gives a connection that answers its cache and client.
func (c *Clusters) buildClients(conn *connection, cfg *rest.Config) error {
	transport := limited{next: newRated(conn.http.Transport, conn.rate), limiter: conn.limiter}
	calls := &http.Client{Transport: transport, Timeout: c.cfg.Timing.CallTimeout, CheckRedirect: noRedirect}
	once := rest.CopyConfig(cfg) // for calls, whose transport has the limit
	once.RateLimiter = flowcontrol.NewFakeAlwaysRateLimiter()
	mapper, err := c.newMapper(once, calls)
	if err != nil {
		return fmt.Errorf("prepare to discover the kinds of the workload cluster: %w", err)
	}
	// The cache has no time limit for its calls: a watch is one call.
	conn.cache, err = cache.New(cfg, cache.Options{
		HTTPClient: conn.http, Scheme: c.cfg.Scheme, Mapper: mapper,
		ReaderFailOnMissingInformer: true, DefaultTransform: slim, ByObject: c.cfg.Watched,
	})
	if err != nil {
		return fmt.Errorf("prepare the cache of the workload cluster: %w", err)
	}
	live, err := client.New(once, client.Options{HTTPClient: calls, Scheme: c.cfg.Scheme, Mapper: mapper})
	if err != nil {
		return fmt.Errorf("prepare the client of the workload cluster: %w", err)
	}
	conn.reads = &reader{cache: conn.cache, live: live, limiter: conn.limiter, timeout: c.cfg.Timing.CallTimeout}
	conn.client = readThrough{Client: live, reads: conn.reads}
	ctx, cancel := context.WithCancel(c.life)
	conn.stop, conn.ended = cancel, ctx.Done()
	go func() {
		if err := conn.cache.Start(ctx); err != nil {
			c.log.Error(err, "cache of a workload cluster ended", "address", conn.address)
		}
	}()
	if !conn.cache.WaitForCacheSync(ctx) { // started; nothing is watched yet
		return notConnected("the component is ending")
	}
	return nil
}

// probe gets the root of the API within the timeout.
func (c *connection) probe(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return probe(ctx, c.http, c.address)
}

// close stops every watch and closes every idle socket; those of the watches close by themselves when they have been idle
// for a while.
func (c *connection) close() {
	c.stop()
	c.sockets.CloseIdleConnections()
}

// stalled reports whether a cache of the connection has been filling for longer
// than the limit.
func (c *connection) stalled(now time.Time, limit time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for informer, started := range c.informers {
		if informer.HasSynced() {
			delete(c.informers, informer)
			continue
		}
		if now.Sub(started) > limit {
			return true
		}
	}
	return false
}

// slim removes from a cached object what no controller reads: the managed
// fields, and the list of images that kubelet reports.
func slim(obj any) (any, error) {
	if o, ok := obj.(client.Object); ok {
		o.SetManagedFields(nil)
	}
	if n, ok := obj.(*corev1.Node); ok {
		n.Status.Images = nil
	}
	return obj, nil
}

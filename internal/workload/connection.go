package workload

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/workload/portforward"
)

// connection is one open connection to a workload cluster. It is created by dial, cannot be used after close, and never
// changes its address or credentials.
type connection struct {
	address string
	http    *http.Client
	sockets *http.Transport
	bounded *limitingTransport
	account *memoryAccount
	// secret is the name of the kubeconfig Secret.
	secret string
	// upgrades is the transport for connections to Pods.
	upgrades http.RoundTripper
	cache    cache.Cache
	client   client.Client
	limiter  *limiter
	rate     *rate.Limiter
	stop     context.CancelFunc
	// ended is closed when the connection ends.
	ended <-chan struct{}

	// reads reads watched kinds from the cache, and other kinds live.
	reads client.Reader
	// watches holds the watchKeys for which an event handler is registered.
	watches sync.Map
	// nodes is the informer for Nodes, with an index by provider ID; nil until it is needed.
	nodes atomic.Pointer[syncingInformer]
	// filled is set when the cache of Nodes has synced. It exists because an informer must not be queried for that
	// while it adds an object.
	filled atomic.Bool

	// refused is the first fault for which a response for the cache was rejected.
	refused atomic.Pointer[fault.Fault]
	// expires is the expiry of the client certificate in the kubeconfig; zero if there is none.
	expires time.Time

	// fresh tracks when the cached Nodes were last current. They are not used if that is longer ago than staleAfter.
	fresh      *freshness
	nodesPath  string
	staleAfter time.Duration
	clock      clock.PassiveClock

	// changing is a lock for changes to the set of watches. It is a channel because changes take API calls, and waiting
	// must end with the context.
	changing chan struct{}

	mu sync.Mutex
	// informers holds the informers that are not known to have synced, with their start time.
	informers map[cache.Informer]time.Time
}

// syncingInformer is an informer with its start time.
type syncingInformer struct {
	cache.Informer
	since time.Time
}

// dial opens a connection for a reconciliation of the Cluster: it parses the kubeconfig, probes the API server once,
// and prepares client and cache; it starts no watch.
func (c *Clusters) dial(ctx context.Context, p task) (*connection, error) {
	cfg, err := ParseKubeconfig(p.kubeconfig, c.cfg.Policy)
	if err != nil {
		return nil, err
	}
	conn, err := c.open(ctx, p, cfg)
	if err != nil || c.cfg.Self == nil || cfg.Host == c.cfg.Self.Host {
		return conn, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timing.ProbeTimeout)
	defer cancel()
	if !c.cfg.Self.RunsOn(ctx, conn.client) {
		return conn, nil
	}
	conn.close()
	return c.open(ctx, p, c.cfg.Self.Shortcut(cfg))
}

// open opens a connection to one address, for dial.
func (c *Clusters) open(ctx context.Context, p task, cfg *rest.Config) (*connection, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = c.cfg.UserAgent
	calls := rate.NewLimiter(rate.Limit(c.cfg.QPS), c.cfg.Burst)
	cfg.RateLimiter = sharedLimiter{calls}
	address, err := root(cfg)
	if err != nil {
		return nil, err
	}
	nodes, err := url.Parse(address + "api/v1/nodes")
	if err != nil {
		return nil, fmt.Errorf("the server address of the kubeconfig cannot be used: %w", err)
	}
	sockets, err := newTransport(cfg)
	if err != nil {
		return nil, err
	}
	bounded := c.limitMemory(p.key, sockets)
	wrapped, err := rest.HTTPWrappersForConfig(cfg, bounded)
	if err != nil {
		return nil, fmt.Errorf("the credentials of the kubeconfig cannot be used: %w", err)
	}
	conn := &connection{
		address: address, sockets: sockets, http: &http.Client{Transport: wrapped, CheckRedirect: noRedirect},
		bounded: bounded, account: bounded.Account, secret: p.cluster.Name + "-kubeconfig", expires: certificateExpiry(cfg),
		fresh: &p.entry.fresh, nodesPath: nodes.Path, staleAfter: c.cfg.Timing.SyncTimeout, clock: c.cfg.Clock,
		informers: map[cache.Informer]time.Time{}, changing: make(chan struct{}, 1), stop: func() {},
		limiter: p.entry.limiter, rate: calls,
	}
	if conn.upgrades, err = portforward.Transport(cfg, sockets); err != nil {
		return nil, err
	}
	if err := conn.probe(ctx, c.cfg.Clock.Now(), c.cfg.Timing.ProbeTimeout); err != nil {
		conn.close()
		return nil, err
	}
	if err := c.buildClients(conn, cfg); err != nil {
		conn.close()
		return nil, err
	}
	return conn, nil
}

// buildClients creates the cache and the client of a connection whose probe succeeded.
func (c *Clusters) buildClients(conn *connection, cfg *rest.Config) error {
	transport := limitedTransport{next: newRated(conn.http.Transport, conn.rate), limiter: conn.limiter}
	calls := &http.Client{Transport: transport, Timeout: c.cfg.Timing.CallTimeout, CheckRedirect: noRedirect}
	once := rest.CopyConfig(cfg) // for calls, because their transport already has the rate limit
	once.RateLimiter = flowcontrol.NewFakeAlwaysRateLimiter()
	mapper, err := c.newMapper(once, calls)
	if err != nil {
		return fmt.Errorf("prepare to discover the kinds of the workload cluster: %w", err)
	}
	// The cache has no timeout for its calls, because a watch is one call.
	watches, err := conn.forCache(cfg)
	if err != nil {
		return err
	}
	conn.cache, err = cache.New(cfg, cache.Options{
		HTTPClient: watches, Scheme: c.cfg.Scheme, Mapper: mapper,
		ReaderFailOnMissingInformer: true, DefaultTransform: conn.transformForCache, ByObject: c.cfg.Watched,
	})
	if err != nil {
		return fmt.Errorf("prepare the cache of the workload cluster: %w", err)
	}
	live, err := client.New(once, client.Options{HTTPClient: calls, Scheme: c.cfg.Scheme, Mapper: mapper})
	if err != nil {
		return fmt.Errorf("prepare the client of the workload cluster: %w", err)
	}
	conn.reads = &reader{cache: conn.cache, live: live, limiter: conn.limiter, timeout: c.cfg.Timing.CallTimeout, stale: conn.staleNodes}
	conn.client = readThrough{Client: live, reads: conn.reads}
	ctx, cancel := context.WithCancel(c.life)
	conn.stop, conn.ended = cancel, ctx.Done()
	go func() {
		if err := conn.cache.Start(ctx); err != nil {
			c.log.Error(err, "cache of a workload cluster stopped", "address", conn.address)
		}
	}()
	if !conn.cache.WaitForCacheSync(ctx) { // only waits for the start; nothing is watched yet
		return notConnected("the manager is shutting down")
	}
	return nil
}

// probe checks within the timeout whether the API server responds.
func (c *connection) probe(ctx context.Context, now time.Time, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := probeAPIServer(ctx, c.http, c.address)
	if err != nil && !c.expires.IsZero() && now.After(c.expires) {
		return expiredError{Secret: c.secret, At: c.expires, Unauthorized: errors.Is(err, errUnauthorized)}
	}
	return err
}

// close stops all watches and closes idle sockets; the sockets of watches close by themselves after they have been idle
// for a while.
func (c *connection) close() {
	c.stop()
	c.sockets.CloseIdleConnections()
}

// stalled reports whether a cache of the connection has not synced within the limit. Each reconciliation of the Cluster
// checks it.
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

// transformForCache removes data that no controller reads from an object before it is cached, namely managed fields and
// the images in the status of a Node, and charges the remaining size to the cluster's account.
func (c *connection) transformForCache(obj any) (any, error) {
	o, ok := obj.(client.Object)
	if !ok {
		return obj, nil
	}
	o.SetManagedFields(nil)
	if n, ok := obj.(*corev1.Node); ok {
		n.Status.Images = nil
		if c.filled.Load() {
			c.fresh.Note(c.clock.Now())
		}
	}
	c.account.Retain(o)
	return obj, nil
}

// newMapper returns a RESTMapper for a workload cluster: kinds that every cluster has are built in, others are
// discovered.
func (c *Clusters) newMapper(cfg *rest.Config, calls *http.Client) (meta.RESTMapper, error) {
	others, err := apiutil.NewDynamicRESTMapper(cfg, calls)
	if err != nil {
		return nil, err
	}
	return meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{c.kinds, others}}, nil
}

package remote

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
	"github.com/slipwayhq/slipway/internal/kubeconfig"
	"github.com/slipwayhq/slipway/internal/remote/answers"
	"github.com/slipwayhq/slipway/internal/remote/endpoint"
	"github.com/slipwayhq/slipway/internal/remote/portforward"
)

// connection is one open connection to a workload cluster. It is created by
// dial, is of no use after close, and is never changed into another one.
type connection struct {
	address string
	http    *http.Client
	sockets *http.Transport
	bounded *answers.Transport
	account *answers.Account
	// secret is the name of the kubeconfig Secret.
	secret string
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
	// filled: the cache has the Nodes. An informer must not be asked for that while it adds an object.
	filled atomic.Bool

	// refused is the first fault of answers for the cache that were not read.
	refused atomic.Pointer[fault.Fault]
	// expires is when the client certificate of the kubeconfig ends; zero: it has none.
	expires time.Time

	// fresh is about the Nodes in the cache, which are not read when they are older than staleAfter.
	fresh      *answers.Freshness
	nodesPath  string
	staleAfter time.Duration
	clock      clock.PassiveClock

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
func (c *Clusters) dial(ctx context.Context, p task) (*connection, error) {
	cfg, err := kubeconfig.Parse(p.kubeconfig, c.cfg.Policy)
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

// open does dial's work for one address.
func (c *Clusters) open(ctx context.Context, p task, cfg *rest.Config) (*connection, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = c.cfg.UserAgent
	calls := rate.NewLimiter(rate.Limit(c.cfg.QPS), c.cfg.Burst)
	cfg.RateLimiter = sharedLimiter{calls}
	address, err := endpoint.Root(cfg)
	if err != nil {
		return nil, err
	}
	nodes, err := url.Parse(address + "api/v1/nodes")
	if err != nil {
		return nil, fmt.Errorf("the server address of the kubeconfig cannot be used: %w", err)
	}
	sockets, err := endpoint.NewTransport(cfg)
	if err != nil {
		return nil, err
	}
	bounded := c.bound(p.key, sockets)
	wrapped, err := rest.HTTPWrappersForConfig(cfg, bounded)
	if err != nil {
		return nil, fmt.Errorf("the credentials of the kubeconfig cannot be used: %w", err)
	}
	conn := &connection{
		address: address, sockets: sockets, http: &http.Client{Transport: wrapped, CheckRedirect: endpoint.NoRedirect},
		bounded: bounded, account: bounded.Account, secret: p.cluster.Name + "-kubeconfig", expires: endpoint.Expiry(cfg),
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

// buildClients gives a connection that answers its cache and client.
func (c *Clusters) buildClients(conn *connection, cfg *rest.Config) error {
	transport := limited{next: newRated(conn.http.Transport, conn.rate), limiter: conn.limiter}
	calls := &http.Client{Transport: transport, Timeout: c.cfg.Timing.CallTimeout, CheckRedirect: endpoint.NoRedirect}
	once := rest.CopyConfig(cfg) // for calls, whose transport has the limit
	once.RateLimiter = flowcontrol.NewFakeAlwaysRateLimiter()
	mapper, err := c.newMapper(once, calls)
	if err != nil {
		return fmt.Errorf("prepare to discover the kinds of the workload cluster: %w", err)
	}
	// The cache has no time limit for its calls: a watch is one call.
	watches, err := conn.forCache(cfg)
	if err != nil {
		return err
	}
	conn.cache, err = cache.New(cfg, cache.Options{
		HTTPClient: watches, Scheme: c.cfg.Scheme, Mapper: mapper,
		ReaderFailOnMissingInformer: true, DefaultTransform: conn.slim, ByObject: c.cfg.Watched,
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
			c.log.Error(err, "cache of a workload cluster ended", "address", conn.address)
		}
	}()
	if !conn.cache.WaitForCacheSync(ctx) { // started; nothing is watched yet
		return notConnected("the component is ending")
	}
	return nil
}

// probe finds out within the timeout whether an API server answers.
func (c *connection) probe(ctx context.Context, now time.Time, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := endpoint.Probe(ctx, c.http, c.address)
	if err != nil && !c.expires.IsZero() && now.After(c.expires) {
		return endpoint.ExpiredError{Secret: c.secret, At: c.expires, Unauthorized: errors.Is(err, endpoint.ErrUnauthorized)}
	}
	return err
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

// slim removes from a cached object what no controller reads, the managed fields and the list of images that kubelet
// reports, and charges the cluster with the rest.
func (c *connection) slim(obj any) (any, error) {
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

// newMapper maps the kinds of a workload cluster: those that every one has, and others by discovery.
func (c *Clusters) newMapper(cfg *rest.Config, calls *http.Client) (meta.RESTMapper, error) {
	others, err := apiutil.NewDynamicRESTMapper(cfg, calls)
	if err != nil {
		return nil, err
	}
	return meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{c.kinds, others}}, nil
}

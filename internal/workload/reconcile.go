package workload

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/fault"
)

// kubeconfigKey is the key of the kubeconfig in its Secret.
const kubeconfigKey = "value"

// Reconcile implements reconcile.Reconciler for one Cluster: it observes the current state, calls decide, acts, and
// requeues for the next probe, the next connection attempt, or the next read of a missing Secret.
func (c *Clusters) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	key := req.NamespacedName
	var cluster clusterv1.Cluster
	if err := c.cfg.Management.Get(ctx, key, &cluster, client.UnsafeDisableDeepCopy); err != nil {
		if !apierrors.IsNotFound(err) {
			return ctrl.Result{}, fmt.Errorf("read Cluster: %w", err)
		}
		c.forget(ctx, key)
		return ctrl.Result{}, nil
	}
	e := c.entry(key)
	f, kubeconfig, err := c.observe(ctx, e, &cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	s := c.act(ctx, task{key: key, cluster: &cluster, entry: e, observed: f, kubeconfig: kubeconfig})
	return ctrl.Result{RequeueAfter: recheck(s, f, c.cfg.Timing)}, nil
}

// observe reads the state for one reconciliation. It reads the Secret only if there is no connection or the Secret may
// have changed, so that a probe does not read it.
func (c *Clusters) observe(ctx context.Context, e *entry, cluster *clusterv1.Cluster) (observation, []byte, error) {
	e.mu.Lock()
	conn, dirty := e.conn, e.dirty
	e.dirty = false
	e.mu.Unlock()
	now := c.cfg.Clock.Now()
	f := observation{
		now:         now,
		provisioned: ptr.Deref(cluster.Status.Initialization.InfrastructureProvisioned, false),
		stalled:     conn != nil && conn.stalled(now, c.cfg.Timing.SyncTimeout),
		excess:      conn.excess(),
		suspended:   c.suspendedUntil(client.ObjectKeyFromObject(cluster)),
		print:       fingerprintOf(cluster),
	}
	if conn != nil && !dirty || !f.provisioned && conn == nil {
		return f, nil, nil
	}
	var secret corev1.Secret
	name := client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Name + "-kubeconfig"}
	if err := c.cfg.Management.Get(ctx, name, &secret); client.IgnoreNotFound(err) != nil {
		e.markDirty()
		return f, nil, fmt.Errorf("read the kubeconfig Secret: %w", err)
	}
	kubeconfig := secret.Data[kubeconfigKey]
	f.secretRead, f.secretFound = true, len(kubeconfig) > 0
	f.print.kubeconfig = sha256.Sum256(kubeconfig)
	return f, kubeconfig, nil
}

// markDirty makes the next reconciliation read the kubeconfig Secret again.
func (e *entry) markDirty() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dirty = true
}

func (e *entry) current() (connectionState, *connection) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.state, e.conn
}

// task is the input of one reconciliation of one cluster.
type task struct {
	key        client.ObjectKey
	cluster    *clusterv1.Cluster
	entry      *entry
	observed   observation
	kubeconfig []byte
}

// act executes the step that decide returns, and returns the resulting state.
func (c *Clusters) act(ctx context.Context, p task) connectionState {
	before, _ := p.entry.current()
	switch decide(before, p.observed) {
	case stepConnect:
		return c.connect(ctx, p)
	case stepDisconnect:
		return c.storeOutcome(ctx, p, nil, before.failed(p.observed.now, "a cache of the workload cluster did not sync in time", true, c.cfg.Timing))
	case stepRefuse:
		problem := fault.UserMessage(p.observed.excess) + "; the manager reconnects after a pause: correct the server, or remove large objects"
		c.log.Info("closing the connection to a workload cluster", "cluster", p.key, "problem", problem)
		return c.storeOutcome(ctx, p, nil, before.exceeded(p.observed.now, problem, c.cfg.Timing))
	case stepSuspend:
		return c.storeOutcome(ctx, p, nil, before.suspend(p.observed.now, p.observed.suspended, crashed(p.cluster, p.observed.suspended)))
	case stepProbe:
		return c.check(ctx, p)
	}
	return before
}

// suspendedUntil returns the time until which the connection is suspended because a previous process crashed while
// decoding a response of the cluster.
func (c *Clusters) suspendedUntil(key client.ObjectKey) time.Time {
	if c.cfg.Crashes == nil {
		return time.Time{}
	}
	return c.cfg.Crashes.SuspendedUntil(key)
}

func crashed(cluster *clusterv1.Cluster, until time.Time) string {
	return fmt.Sprintf("the manager crashed while it read a response of this cluster's API server, and reconnects at %s: "+
		"correct the server that Secret %s-kubeconfig names, or the Secret", until.UTC().Format(time.RFC3339), cluster.Name)
}

// connect opens a connection with the kubeconfig that was read, and replaces the current one, if any. A failed attempt
// with a new kubeconfig closes the old connection too, because its credentials have been replaced.
func (c *Clusters) connect(ctx context.Context, p task) connectionState {
	s, _ := p.entry.current()
	s.tried = p.observed.print
	if s.connected {
		s.connected, s.since = false, p.observed.now
	}
	conn, err := c.dial(ctx, p)
	now := c.cfg.Clock.Now()
	c.metrics.probed(p.key, err == nil)
	if err != nil {
		return c.storeOutcome(ctx, p, nil, s.failed(now, c.problem(ctx, p, s, err), true, c.cfg.Timing))
	}
	c.log.Info("connected to workload cluster", "cluster", p.key, "address", conn.address)
	return c.storeOutcome(ctx, p, conn, s.succeeded(now, c.cfg.Timing))
}

// check probes the connection.
func (c *Clusters) check(ctx context.Context, p task) connectionState {
	s, conn := p.entry.current()
	if conn == nil { // the manager is shutting down
		return s
	}
	began := time.Now()
	err := conn.probe(ctx, c.cfg.Clock.Now(), c.cfg.Timing.ProbeTimeout)
	conn.limiter.probed(time.Since(began), err)
	now := c.cfg.Clock.Now()
	c.metrics.probed(p.key, err == nil)
	if err == nil {
		return c.storeOutcome(ctx, p, conn, s.succeeded(now, c.cfg.Timing))
	}
	p.entry.markDirty() // the Secret may have been renewed
	s = s.failed(now, c.problem(ctx, p, s, err), errors.Is(err, errUnauthorized), c.cfg.Timing)
	if !s.connected {
		c.log.Info("closing the connection to a workload cluster that does not respond", "cluster", p.key, "problem", s.problem)
		conn = nil
	}
	return c.storeOutcome(ctx, p, conn, s)
}

// problem returns the message of a failed call for conditions. The cause is logged once for as long as the message does
// not change.
func (c *Clusters) problem(ctx context.Context, p task, before connectionState, err error) string {
	message := fault.UserMessage(err)
	var failed *callError
	if errors.As(err, &failed) && c.cfg.IsManagedAddress != nil && c.cfg.IsManagedAddress(ctx, p.cluster, failed.Host) {
		message = failed.DetailedMessage(c.cfg.Timing.ProbeTimeout)
	}
	if message != before.problem {
		c.log.Info("workload cluster does not respond", "cluster", p.key, "problem", err.Error())
	}
	return message
}

// storeOutcome stores the result of a step, closes a connection that was replaced, and notifies controllers of changes
// that are relevant to them.
func (c *Clusters) storeOutcome(ctx context.Context, p task, conn *connection, after connectionState) connectionState {
	e := p.entry
	e.mu.Lock()
	before, old := e.state, e.conn
	e.state, e.conn = after, conn
	e.mu.Unlock()
	if old != nil && old != conn {
		old.close()
	}
	c.metrics.connected(p.key, after.connected)
	if old != conn || shouldNotify(before, after) {
		c.notify(ctx, p.key)
	}
	return after
}

// shouldNotify reports whether a change is relevant to controllers: the connection opens or closes, probes start or
// stop failing, or fail for another reason.
func shouldNotify(before, after connectionState) bool {
	return before.connected != after.connected || (before.failures == 0) != (after.failures == 0) ||
		before.problem != after.problem
}

// forget removes a cluster that no longer exists.
func (c *Clusters) forget(ctx context.Context, key client.ObjectKey) {
	c.mu.Lock()
	e := c.entries[key]
	delete(c.entries, key)
	c.mu.Unlock()
	c.metrics.forget(key)
	if e == nil {
		return
	}
	c.pool.latencies.forget(e.limiter)
	e.mu.Lock()
	conn := e.conn
	e.conn, e.state.connected = nil, false
	e.mu.Unlock()
	if conn != nil {
		conn.close()
	}
	c.notify(ctx, key)
}

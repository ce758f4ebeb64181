package bootstrap

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/bootstrap/initlock"
)

// readLock reads the lock, and whether the Machine that holds it still exists: both from the API server, because what
// a cache has not seen yet must not be taken for gone.
func (c *Controller) readLock(ctx context.Context, s Snapshot) (*initlock.State, error) {
	key := client.ObjectKey{Namespace: s.Cluster.Namespace, Name: initlock.Name(s.Cluster.Name)}
	lock := &corev1.ConfigMap{}
	switch err := c.client.Get(ctx, key, lock); {
	case apierrors.IsNotFound(err):
		c.noteRelease(s)
		return &initlock.State{}, nil
	case err != nil:
		return nil, fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	state := initlock.StateOf(lock)
	if state.Holder == "" || state.Holder == s.Owner.Name {
		return &state, nil
	}
	key.Name = state.Holder
	switch err := c.live.Get(ctx, key, &clusterv1.Machine{}); {
	case apierrors.IsNotFound(err):
		state.HolderGone = true
	case err != nil:
		return nil, fmt.Errorf("reading Machine %s: %w", key, err)
	}
	return &state, nil
}

func (c *Controller) takeLock(ctx context.Context, s Snapshot) error {
	lock, err := initlock.New(s.Cluster, s.Owner.Name)
	if err != nil {
		return err
	}
	return c.writer.Create(ctx, lock)
}

// releaseLock deletes the lock as it was read: one that was taken meanwhile stays.
func (c *Controller) releaseLock(ctx context.Context, s Snapshot) error {
	if s.Lock == nil || !s.Lock.Found() {
		return fault.New(fault.Bug, "NoLock", "there is no lock of Cluster %s to release", s.Cluster.Name)
	}
	if err := c.writer.Delete(ctx, s.Lock.ConfigMap); err != nil {
		return err
	}
	c.noteRelease(s)
	return nil
}

// noteRelease remembers that the lock of an initialized Cluster is not there: it is never taken again.
func (c *Controller) noteRelease(s Snapshot) {
	if s.initialized() {
		c.released.note(s.Cluster)
	}
}

// releases remembers which Clusters have no lock any more, so that it is read once and not in every reconcile of every
// Machine of their control planes. The zero value is empty.
type releases struct {
	mu    sync.Mutex
	known map[client.ObjectKey]types.UID
}

func (r *releases) note(cluster *clusterv1.Cluster) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = map[client.ObjectKey]types.UID{}
	}
	r.known[client.ObjectKeyFromObject(cluster)] = cluster.UID
}

func (r *releases) has(cluster *clusterv1.Cluster) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	uid, ok := r.known[client.ObjectKeyFromObject(cluster)]
	return ok && uid == cluster.UID
}

// forget is called for Clusters that are gone or going.
func (r *releases) forget(key client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, key)
}

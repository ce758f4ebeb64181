package bootstrap

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
)

// dataKey is the key of the ConfigMap <cluster>-lock. The name, the key and the JSON are the same as in the reference
// implementation, so that a Cluster can change its manager while it is being initialized.
const dataKey = "lock-information"

// information is the JSON value of the key.
type information struct {
	MachineName string `json:"machineName"`
}

// initLockState is the state of a Cluster's lock, by which only one Machine initializes the control plane. It is read
// for control plane Machines until the Cluster is initialized and the lock is released. The zero value is a free lock.
type initLockState struct {
	// ConfigMap as read, or nil if it does not exist.
	ConfigMap *corev1.ConfigMap
	// Holder is the name of the Machine, or empty if the ConfigMap does not contain it.
	Holder string
	// HolderGone is true if the Machine does not exist.
	HolderGone bool
}

// Found reports whether the lock exists.
func (s initLockState) Found() bool { return s.ConfigMap != nil }

func initLockName(cluster string) string { return cluster + "-lock" }

// newInitLock returns the lock of the Cluster, held by the Machine and owned by the Cluster.
func newInitLock(cluster *clusterv1.Cluster, machine string) (*corev1.ConfigMap, error) {
	data, err := json.Marshal(information{MachineName: machine})
	if err != nil {
		return nil, fault.New(fault.Bug, "InvalidLock", "the name of Machine %s cannot be encoded", machine).From(err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster.Namespace, Name: initLockName(cluster.Name),
			Labels: map[string]string{clusterv1.ClusterNameLabel: cluster.Name},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: clusterv1.GroupVersion.String(), Kind: clusterv1.ClusterKind, Name: cluster.Name, UID: cluster.UID,
			}},
		},
		Data: map[string]string{dataKey: string(data)},
	}, nil
}

// parseInitLock reads the ConfigMap, which may be nil. The caller sets HolderGone.
func parseInitLock(lock *corev1.ConfigMap) initLockState {
	if lock == nil {
		return initLockState{}
	}
	var in information
	if err := json.Unmarshal([]byte(lock.Data[dataKey]), &in); err != nil {
		return initLockState{ConfigMap: lock}
	}
	return initLockState{ConfigMap: lock, Holder: in.MachineName}
}

// readLock reads the lock and whether its holder still exists. Both are read from the API server, because a Machine
// missing in a stale cache may still exist. [decideLock] and [decideRelease] request it.
func (c *controller) readLock(ctx context.Context, s snapshot) (*initLockState, error) {
	key := client.ObjectKey{Namespace: s.Cluster.Namespace, Name: initLockName(s.Cluster.Name)}
	lock := &corev1.ConfigMap{}
	switch err := c.client.Get(ctx, key, lock); {
	case apierrors.IsNotFound(err):
		c.noteRelease(s)
		return &initLockState{}, nil
	case err != nil:
		return nil, fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	state := parseInitLock(lock)
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

// takeLock creates the ConfigMap of the lock for a Machine. act calls it.
func (c *controller) takeLock(ctx context.Context, s snapshot) error {
	lock, err := newInitLock(s.Cluster, s.Owner.Name)
	if err != nil {
		return err
	}
	return c.writer.Create(ctx, lock)
}

// releaseLock deletes the lock in the observed version, so that a lock taken in the meantime is not deleted. act calls
// it.
func (c *controller) releaseLock(ctx context.Context, s snapshot) error {
	if s.Lock == nil || !s.Lock.Found() {
		return fault.New(fault.Bug, "NoLock", "the lock of Cluster %s does not exist", s.Cluster.Name)
	}
	if err := c.writer.Delete(ctx, s.Lock.ConfigMap); err != nil {
		return err
	}
	c.noteRelease(s)
	return nil
}

// noteRelease records that the lock of an initialized Cluster does not exist. It is never taken again.
func (c *controller) noteRelease(s snapshot) {
	if s.initialized() {
		c.released.note(s.Cluster)
	}
}

// releases caches the Clusters whose lock was released, by UID, so that the lock is not read in every reconciliation of
// every control plane Machine. The zero value is empty. observe reads it, and removes the entries of deleted Clusters.
type releases struct{ known sync.Map }

func (r *releases) note(cluster *clusterv1.Cluster) {
	r.known.Store(client.ObjectKeyFromObject(cluster), cluster.UID)
}

// has reports whether the lock of the Cluster was released by this process or found released. observe calls it.
func (r *releases) has(cluster *clusterv1.Cluster) bool {
	uid, known := r.known.Load(client.ObjectKeyFromObject(cluster))
	return known && uid == cluster.UID
}

// forget removes Clusters that are deleted or being deleted. observe calls it.
func (r *releases) forget(key client.ObjectKey) { r.known.Delete(key) }

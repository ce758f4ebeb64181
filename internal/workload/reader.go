package workload

import (
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// isAlwaysLive reports kinds that are never read from a cache, even if one exists, because they are numerous, large or
// secret, and must be current at the time of the read. The comment of [Clusters.Client] lists them, too.
func isAlwaysLive(kind any) bool {
	switch kind.(type) {
	case *corev1.ConfigMap, *corev1.ConfigMapList, *corev1.Secret, *corev1.SecretList, *corev1.Pod, *corev1.PodList,
		*appsv1.DaemonSet, *appsv1.DaemonSetList, *appsv1.Deployment, *appsv1.DeploymentList, *corev1.PersistentVolume, *corev1.PersistentVolumeList,
		*storagev1.VolumeAttachment, *storagev1.VolumeAttachmentList:
		return true
	}
	return false
}

// reader is the read side of the client that [Clusters.Client] returns. It reads watched kinds from the cache, and
// other kinds live, so that a read never starts a watch. A read from the cache takes no permit, because it makes no
// call.
type reader struct {
	cache   client.Reader
	live    client.Reader
	limiter *limiter
	timeout time.Duration
	// stale returns an error if the cached Nodes are too old.
	stale func() error
}

var _ client.Reader = &reader{}

func (r *reader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return r.read(ctx, obj, func(ctx context.Context, from client.Reader) error { return from.Get(ctx, key, obj, opts...) })
}

func (r *reader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return r.read(ctx, list, func(ctx context.Context, from client.Reader) error { return from.List(ctx, list, opts...) })
}

func (r *reader) read(ctx context.Context, kind any, read func(context.Context, client.Reader) error) error {
	ctx, end := beginResponse(ctx)
	defer end()
	if isAlwaysLive(kind) {
		return read(ctx, r.live)
	}
	switch kind.(type) {
	case *corev1.Node, *corev1.NodeList:
		if err := r.stale(); err != nil {
			return err
		}
	}
	atOnce, cancel := context.WithTimeout(ctx, 0) // do not wait for the cache
	defer cancel()
	err := read(atOnce, r.cache)
	switch {
	case isNotWatched(err):
		return read(ctx, r.live)
	case apierrors.IsTimeout(err): // the cache has not synced yet
		return r.limiter.do(ctx, func(ctx context.Context) error {
			limited, cancel := context.WithTimeout(ctx, r.timeout)
			defer cancel()
			return asNotConnected(limited, read(limited, r.cache))
		})
	}
	return err
}

func isNotWatched(err error) bool {
	var notCached *cache.ErrResourceNotCached
	return errors.As(err, &notCached)
}

// asNotConnected converts an error of a read that exceeded its time limit to "not connected": the cache has not synced
// yet, so a retry succeeds later.
func asNotConnected(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return notConnected("the cache of the workload cluster is not synced yet").From(err)
	}
	return err
}

// readThrough is a client whose reads go through a reader.
type readThrough struct {
	client.Client
	reads client.Reader
}

func (c readThrough) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return c.reads.Get(ctx, key, obj, opts...)
}

func (c readThrough) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.reads.List(ctx, list, opts...)
}

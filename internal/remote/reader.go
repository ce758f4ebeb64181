package remote

import (
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// liveKinds are never read from a cache, even where one exists: they are many,
// large or secret, and must be true at the moment of the read (RC-07).
func liveKinds() []client.Object {
	return []client.Object{
		&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Pod{}, &appsv1.DaemonSet{},
		&corev1.PersistentVolume{}, &storagev1.VolumeAttachment{},
	}
}

// reader reads from the cache what somebody watches, and else live, so that a
// read never starts a watch (RC-07).
type reader struct {
	cache   client.Reader
	live    client.Reader
	timeout time.Duration
}

var _ client.Reader = &reader{}

// Get implements client.Reader.
func (r *reader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	limited, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	err := r.cache.Get(limited, key, obj, opts...)
	if notWatched(err) {
		return r.live.Get(ctx, key, obj, opts...)
	}
	return loading(limited, err)
}

// List implements client.Reader.
func (r *reader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	limited, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	err := r.cache.List(limited, list, opts...)
	if notWatched(err) {
		return r.live.List(ctx, list, opts...)
	}
	return loading(limited, err)
}

func notWatched(err error) bool {
	var notCached *cache.ErrResourceNotCached
	return errors.As(err, &notCached)
}

// loading turns an error of a read that ended with its time limit into "not
// connected": the cache is still filling, and waiting helps.
func loading(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return notConnected("the cache of the workload cluster is still filling").From(err)
	}
	return err
}

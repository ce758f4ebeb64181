package simulated

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/kubernetes/pkg/controller/namespace/deletion"
)

// namespaceDeleter empties deleted namespaces of all clusters, with the code of Kubernetes' namespace controller. The
// simulator calls it for each change of a namespace.
type namespaceDeleter struct {
	mu      sync.Mutex
	deleter deletion.NamespacedResourcesDeleterInterface
}

// namespace empties a namespace that is being deleted and removes its finalizer.
func (e *namespaceDeleter) namespace(l *simulator, m *simulatedCluster, name string) (time.Duration, error) {
	o, err := l.client.CoreV1().Namespaces().Get(m.ctx, name, metav1.GetOptions{})
	if err != nil || o.DeletionTimestamp.IsZero() {
		return 0, ignoreNotFound(err)
	}
	deleter, err := e.ready(l, m)
	if err != nil {
		return 0, err
	}
	err = deleter.Delete(m.ctx, name)
	remaining := &deletion.ResourcesRemainingError{}
	if errors.As(err, &remaining) {
		return firstRetry, nil // the remaining objects are being deleted
	}
	if apierrors.IsConflict(err) {
		return firstRetry, nil
	}
	return 0, err
}

// ready returns the deleter. All clusters have the same resources, so it discovers them in one cluster.
func (e *namespaceDeleter) ready(l *simulator, m *simulatedCluster) (deletion.NamespacedResourcesDeleterInterface, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.deleter != nil {
		return e.deleter, nil
	}
	objects, err := metadata.NewForConfig(l.api.Loopback())
	if err != nil {
		return nil, err
	}
	discover, err := discovery.NewDiscoveryClientForConfig(l.api.LoopbackOf(m.ctx, m.tenant))
	if err != nil {
		return nil, err
	}
	resources, err := discover.ServerPreferredNamespacedResources()
	if err != nil {
		return nil, err
	}
	known := func() ([]*metav1.APIResourceList, error) { return resources, nil }
	e.deleter = deletion.NewNamespacedResourcesDeleter(
		context.WithoutCancel(m.ctx), l.client.CoreV1().Namespaces(), objects, l.client.CoreV1(), known, corev1.FinalizerKubernetes)
	return e.deleter, nil
}

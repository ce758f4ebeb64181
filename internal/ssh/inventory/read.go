package inventory

import (
	"context"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
)

// LabelsInterval is the interval in which the labels of a namespace are read again, which select hosts and are not watched.
const LabelsInterval = 5 * time.Minute

// Read reads all SSHHosts, and the UID and the labels of the namespace for a request that selects some of them. The hosts are shared with
// the cache and must not be changed. The SSHMachine, SSHCluster and SSHMachineTemplate controllers and `slipway create
// cluster` call it.
func Read(ctx context.Context, c client.Reader, namespace string) (Request, []*infrav1.SSHHost, error) {
	request := Request{Namespace: Namespace{Name: namespace}}
	n, err := infrastructure.ReadObject(ctx, c, "", namespace, &corev1.Namespace{})
	if err != nil {
		return request, nil, err
	}
	if n != nil {
		request.Namespace.UID, request.Namespace.Labels = n.UID, n.Labels
	}
	list := &infrav1.SSHHostList{}
	if err := c.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return request, nil, fmt.Errorf("listing SSHHosts: %w", err)
	}
	var hosts []*infrav1.SSHHost
	for i := range list.Items {
		hosts = append(hosts, &list.Items[i])
	}
	return request, hosts, nil
}

// EnqueueAll enqueues all objects of a kind for an event of an SSHHost. The SSHCluster and SSHMachineTemplate
// controllers watch SSHHosts with it.
func EnqueueAll(c client.Reader, newList func() client.ObjectList) handler.MapFunc {
	return func(ctx context.Context, _ client.Object) []reconcile.Request {
		list := newList()
		if c.List(ctx, list, client.UnsafeDisableDeepCopy) != nil {
			return nil
		}
		return watches.Requests(list)
	}
}

// OfferChanged selects updates of SSHHosts that change which namespaces have them, their failure domains or their
// facts. The SSHCluster and SSHMachineTemplate controllers filter events with it.
func OfferChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*infrav1.SSHHost), e.ObjectNew.(*infrav1.SSHHost)
		return before.Generation != after.Generation || !reflect.DeepEqual(before.Status.Facts, after.Status.Facts) || !reflect.DeepEqual(before.Labels, after.Labels)
	}}
}

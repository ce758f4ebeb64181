package progress

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/operate/describe"
)

// tick is the maximum time between two reads. Provider objects are not watched, and the displayed time must advance.
const tick = time.Second

// settle is the delay in which simultaneous changes are collected for one read.
const settle = 100 * time.Millisecond

// API is the [Source] of commands that wait for a cluster. It reads from a management cluster and watches the core
// objects of the cluster. `slipway describe cluster --watch` waits for changes with it, too.
type API struct {
	client  client.WithWatch
	key     client.ObjectKey
	changed chan struct{}
}

// NewAPI returns the source for a cluster. Its watches end with ctx. If a watch cannot be established, the cluster is
// read every second.
func NewAPI(ctx context.Context, c client.WithWatch, key client.ObjectKey) *API {
	a := &API{client: c, key: key, changed: make(chan struct{}, 1)}
	for _, kind := range []string{"Cluster", "MachinePool", "MachineDeployment", "Machine"} {
		go a.watch(ctx, kind)
	}
	return a
}

// Snapshot implements Source.
func (a *API) Snapshot(ctx context.Context) (describe.Snapshot, error) {
	return describe.Read(ctx, a.client, a.key, describe.Options{})
}

// Wait implements Source.
func (a *API) Wait(ctx context.Context) error {
	limit := time.NewTimer(tick)
	defer limit.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-limit.C:
		return nil
	case <-a.changed:
	}
	pause := time.NewTimer(settle)
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-pause.C:
		return nil
	}
}

// watch ends a call of [API.Wait] early when an object of the kind changes. It ends when the watch ends, because
// [API.Wait] returns at least once per tick in any case.
func (a *API) watch(ctx context.Context, kind string) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(kind + "List"))
	options := []client.ListOption{client.InNamespace(a.key.Namespace)}
	if kind == "Cluster" {
		options = append(options, client.MatchingFields{"metadata.name": a.key.Name})
	} else {
		options = append(options, client.MatchingLabels{clusterv1.ClusterNameLabel: a.key.Name})
	}
	w, err := a.client.Watch(ctx, list, options...)
	if err != nil {
		return
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-w.ResultChan():
			if !ok {
				return
			}
			select {
			case a.changed <- struct{}{}:
			default: // a read is already pending
			}
		}
	}
}

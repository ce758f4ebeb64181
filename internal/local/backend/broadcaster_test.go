package backend_test

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipwayhq/slipway/internal/local/backend"
)

// script is a backend that says what it is told to.
type script []backend.Event

func (s script) Watch(_ context.Context, handle func(backend.Event)) error {
	for _, e := range s {
		handle(e)
	}
	return nil
}

func TestHubWakesEveryController(t *testing.T) {
	m := types.NamespacedName{Namespace: "ns", Name: "m"}
	hub := backend.NewBroadcaster(script{{Machine: m}, {Network: "n"}})
	var queues []workqueue.TypedRateLimitingInterface[reconcile.Request]
	for range 2 {
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer q.ShutDown()
		machines := func(_ context.Context, e backend.Event) []reconcile.Request {
			if e.Machine.Name == "" {
				return nil
			}
			return []reconcile.Request{{NamespacedName: e.Machine}}
		}
		if err := hub.Source(machines).Start(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		queues = append(queues, q)
	}
	if err := hub.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, q := range queues {
		if q.Len() != 1 {
			t.Fatalf("queue %d has %d requests, want one: the other event is not about it", i, q.Len())
		}
		if r, _ := q.Get(); r.NamespacedName != m {
			t.Errorf("queue %d: got %v", i, r)
		}
	}
}

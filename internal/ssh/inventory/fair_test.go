package inventory_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
)

// TestSlowHostsOfOneNamespace checks that many hosts of a tenant that hang leave workers to the hosts of others. All SSHHosts are in
// the namespace of the operator.
func TestSlowHostsOfOneNamespace(t *testing.T) {
	const workers = 4
	synctest.Test(t, func(t *testing.T) {
		var done []string
		began := time.Now()
		f := &inventory.Fair{
			Workers: workers, Now: time.Now,
			Namespace: func(_ context.Context, r reconcile.Request) string {
				namespace, _, _ := strings.Cut(r.Name, "-")
				return namespace
			},
			Next: reconcile.Func(func(_ context.Context, r reconcile.Request) (ctrl.Result, error) {
				if strings.HasPrefix(r.Name, "slow") {
					time.Sleep(time.Hour)
				} else {
					done = append(done, fmt.Sprintf("%s %s", r.Name, time.Since(began)))
				}
				return ctrl.Result{}, nil
			}),
		}
		queue := make(chan reconcile.Request, 100)
		for range workers {
			go func() {
				for r := range queue {
					if result, _ := f.Reconcile(t.Context(), r); result.RequeueAfter > 0 {
						time.AfterFunc(result.RequeueAfter, func() { queue <- r })
					}
				}
			}()
		}
		add := func(names ...string) {
			for _, name := range names {
				queue <- reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "hosts", Name: name}}
			}
			synctest.Wait()
		}
		add("slow-1", "slow-2")
		time.Sleep(2 * time.Second)
		add("slow-3", "slow-4", "slow-5", "a-1", "b-1")
		if want := []string{"a-1 2s", "b-1 2s"}; !slices.Equal(done, want) {
			t.Errorf("done %v, want %v", done, want)
		}
		// When they end, the others of the namespace do not take all workers either.
		time.Sleep(time.Hour)
		add("a-2")
		if want := "a-2 1h0m2s"; done[len(done)-1] != want {
			t.Errorf("done %v, want %s last", done, want)
		}
		time.Sleep(4 * time.Hour)
		add("a-3", "a-4", "a-5")
		if len(done) != 6 {
			t.Errorf("done %v", done)
		}
		close(queue)
	})
}

// TestNamespaceOf checks that a host counts for the users who can make it slow.
func TestNamespaceOf(t *testing.T) {
	for want, change := range map[string]func(*infrav1.SSHHost){
		"hosts":  nil,
		"team-a": func(h *infrav1.SSHHost) { h.Annotations = map[string]string{infrav1.LastNamespaceAnnotation: "team-a"} },
		"team-b": func(h *infrav1.SSHHost) {
			h.Annotations = map[string]string{infrav1.LastNamespaceAnnotation: "team-a"}
			h.Status.Claim = &infrav1.SSHHostClaim{Namespace: "team-b"}
		},
	} {
		if got := inventory.NamespaceOf(host("h", change)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

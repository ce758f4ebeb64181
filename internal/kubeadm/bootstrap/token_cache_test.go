package bootstrap

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

func TestTokensAreTrustedForAWhile(t *testing.T) {
	var known tokens
	key := tokenKey{cluster: client.ObjectKey{Namespace: "ns", Name: "c"}, id: "abcdef"}
	if _, ok := known.get(key, now); ok {
		t.Error("nothing was remembered")
	}
	state := tokenState{Found: true, Expires: now.Add(ttl)}
	known.set(key, state, now)
	if got, ok := known.get(key, now.Add(tokenCacheTTL-time.Second)); !ok || got != state {
		t.Errorf("within a minute: %v, %t", got, ok)
	}
	other := key
	other.cluster.Name = "d"
	if _, ok := known.get(other, now); ok {
		t.Error("a token of that name in another cluster is another one")
	}
	if _, ok := known.get(key, now.Add(tokenCacheTTL)); ok {
		t.Error("after a minute the cluster is asked again")
	}
	for i := range 100 {
		known.set(tokenKey{id: fmt.Sprint(i)}, state, now.Add(time.Duration(i)*tokenCacheTTL))
	}
	if len(known.known) != 1 {
		t.Errorf("what is not trusted any more is forgotten, but there are %d", len(known.known))
	}
}

// RC-06, KB-10: calls to a workload cluster are limited, so a machine that comes into being costs it one.
func TestCallsForOneMachine(t *testing.T) {
	var gets, creates int
	ofWorkload := func(key client.ObjectKey) int {
		if key.Namespace == "kube-system" {
			return 1
		}
		return 0
	}
	base := build(t, ownedBy("Machine", "m"), machine(), cluster(), ca()).WithReturnManagedFields().Build()
	c := interceptor.NewClient(base, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, ok := o.(*corev1.Secret); ok {
				gets += ofWorkload(key)
			}
			return c.Get(ctx, key, o, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			creates += ofWorkload(client.ObjectKeyFromObject(o))
			return c.Create(ctx, o, opts...)
		},
	})
	w := newWorld(t, c)
	ctl := &controller{client: c, cache: c, refs: kube.NewReferences(c, nil), workloads: w.remote, ttl: ttl, now: func() time.Time { return w.clock }}
	r := &reconciler.Reconciler[*bootstrapv1.KubeadmConfig, snapshot]{Controller: ctl.definition(), Client: c, Writer: kube.NewWriter(c, Name), Now: ctl.now}
	ctl.writer = r.Writer
	pass := func() {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "w"}}); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		pass()
	}
	if w.data() == nil || gets != 0 || creates != 1 {
		t.Errorf("want the data after one call that makes the token, got data %t, %d reads and %d creations", w.data() != nil, gets, creates)
	}
	w.clock = now.Add(ttl / 3)
	pass()
	if gets == 0 {
		t.Error("a third of its life later the token was not looked at")
	}
}

package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/local/simulated"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

func simulatedCluster(change func(*infrav1.LocalCluster)) *infrav1.LocalCluster {
	return localCluster(func(o *infrav1.LocalCluster) {
		o.Spec.Backend = infrav1.LocalClusterBackend{Simulated: &infrav1.SimulatedCluster{}}
		if change != nil {
			change(o)
		}
	})
}

// withBackend returns the snapshot with what the simulated backend says, and what annotations make wrong with it.
func withBackend(t *testing.T, s snapshot) snapshot {
	t.Helper()
	set := backend.Set{infrav1.SimulatedBackend: simulated.WrapFaulty(simulated.New(nil, nil, time.Now), time.Now)}
	b, err := set.Choose(s.Object.Spec.Backend.Name(), s.Object.Annotations)
	if err != nil {
		t.Fatal(err)
	}
	s.Capabilities = b.Networks.NetworkCapabilities(policy.Default())
	_, found, err := b.Networks.FindNetwork(t.Context(), s.ref())
	if s.Fault = fault.As(err); found || s.Fault == nil && err != nil {
		t.Fatalf("a network: %t, %v", found, err)
	}
	return s
}

// A LocalCluster that is gone without a deletion, as after a move, leaves nothing that only this process has.
func TestGone(t *testing.T) {
	w := newWorld(t, localCluster(func(o *infrav1.LocalCluster) { o.Finalizers = nil }))
	var gone []string
	for name, b := range w.Backends {
		b.DeleteState = func(cluster types.NamespacedName) error { gone = append(gone, name+" "+cluster.String()); return nil }
		w.Backends[name] = b
	}
	if err := w.client.Delete(t.Context(), w.get(t)); err != nil {
		t.Fatal(err)
	}
	if err := w.reconcile(1); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{infrav1.ContainerBackend + " ns/lc"}, gone); d != "" {
		t.Error(d)
	}
}

func TestSimulated(t *testing.T) { // IC-02, IC-04, IC-05
	simulatedPlane := &controlplanev1.HostedControlPlane{}
	simulatedPlane.Spec.Backend.Simulated = &controlplanev1.SimulatedBackend{}
	cases := map[string]struct {
		reason string
		s      snapshot
		waits  []string
		done   bool
	}{
		"nothing to make": {"its control plane brings an endpoint", snapshot{Object: simulatedCluster(nil), Cluster: coreCluster(withPlane), HostedControlPlane: simulatedPlane}, nil, true},
		"no plane yet":    {"it brings one when it comes", snapshot{Object: simulatedCluster(nil), Cluster: coreCluster(withPlane)}, nil, true},
		"no cluster":      {"nobody wants it yet (IC-08)", snapshot{Object: simulatedCluster(nil)}, []string{reasonCluster}, false},
		"a process": {"there is no network where it could listen", snapshot{Object: simulatedCluster(nil), Cluster: coreCluster(withPlane),
			HostedControlPlane: &controlplanev1.HostedControlPlane{}}, []string{reasonEndpoint}, false},
		"a process, told where": {"IC-02: the Cluster says", snapshot{Object: simulatedCluster(nil), HostedControlPlane: &controlplanev1.HostedControlPlane{}, Cluster: coreCluster(func(c *clusterv1.Cluster) {
			withPlane(c)
			c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 6443}
		})}, nil, true},
		"kept back": {"an annotation", snapshot{Cluster: coreCluster(withPlane), HostedControlPlane: simulatedPlane, Object: simulatedCluster(func(o *infrav1.LocalCluster) {
			o.Annotations = map[string]string{infrav1.NeverProvisionsAnnotation: ""}
		})}, []string{"NeverProvisions"}, false},
		"not kept back": {"the value false", snapshot{Cluster: coreCluster(withPlane), HostedControlPlane: simulatedPlane, Object: simulatedCluster(func(o *infrav1.LocalCluster) {
			o.Annotations = map[string]string{infrav1.NeverProvisionsAnnotation: "false"}
		})}, nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.s = withBackend(t, tc.s)
			p := decide(tc.s)
			var waits []string
			for _, w := range p.Waits {
				waits = append(waits, w.Reason)
			}
			if d := cmp.Diff(tc.waits, waits); d != "" || len(p.Actions) > 0 {
				t.Errorf("%s: actions %v, waits (-want +got):\n%s", tc.reason, p.Actions, d)
			}
			status := report(tc.s, p, reconciler.Outcome{}).Status.(infrav1.LocalClusterStatus)
			provisioned := status.Initialization.Provisioned != nil && *status.Initialization.Provisioned
			if ready := condition.Set(status.Conditions).IsTrue(clusterv1.ReadyCondition); provisioned != tc.done || ready != tc.done {
				t.Errorf("%s: provisioned %t, Ready %t", tc.reason, provisioned, ready)
			}
		})
	}
	going := simulatedCluster(func(o *infrav1.LocalCluster) { o.DeletionTimestamp = &metav1.Time{Time: now} })
	if p := decide(withBackend(t, snapshot{Object: going, Machines: []string{"m"}})); !p.Idle() {
		t.Errorf("nothing holds a simulated cluster back: %+v", p)
	}
}

// TestFinalizerComesWithTheEndpoint: one write less for each simulated cluster; a network of a real one needs the finalizer first.
func TestFinalizerComesWithTheEndpoint(t *testing.T) { // IC-02
	yes := true
	for name, tc := range map[string]struct {
		cluster *infrav1.LocalCluster
		defers  bool
	}{
		"nothing was made": {simulatedCluster(nil), true},
		"told where": {simulatedCluster(func(o *infrav1.LocalCluster) {
			o.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 1}
		}), false},
		"its control plane chose": {simulatedCluster(func(o *infrav1.LocalCluster) { o.Status.Initialization.Provisioned = &yes }), false},
		"with a network":          {localCluster(nil), false},
	} {
		w := newWorld(t, tc.cluster)
		if got := w.definition().DeferFinalizer(tc.cluster); got != tc.defers {
			t.Errorf("%s: the finalizer can wait: %t, want %t", name, got, tc.defers)
		}
	}
	w := newWorld(t, simulatedCluster(func(o *infrav1.LocalCluster) { o.Finalizers = nil }))
	w.Backends[infrav1.SimulatedBackend] = w.Backends[infrav1.ContainerBackend]
	if err := w.act(t.Context(), snapshot{Object: w.get(t), Cluster: coreCluster(nil)}, setEndpoint{Host: "127.0.0.1", Port: 24000}); err != nil {
		t.Fatal(err)
	}
	got := w.get(t)
	if got.Spec.ControlPlaneEndpoint.Port != 24000 || !cmp.Equal(got.Finalizers, []string{infrav1.LocalClusterFinalizer}) {
		t.Errorf("endpoint %v, finalizers %v", got.Spec.ControlPlaneEndpoint, got.Finalizers)
	}
}

package local

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/local/backend"
)

// asked is an engine that says what would be kept.
type asked struct {
	owner            backend.Owner
	machine, network *bool
}

func (a asked) Sweep(_ context.Context, keep backend.InUse) error {
	*a.machine, *a.network = keep.Machine(a.owner), keep.Network(a.owner)
	return errors.New("Docker is away") // is no reason to stop the program
}

func TestSweeperRemovesOnlyWhatIsCertainlyNotNeeded(t *testing.T) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, infrav1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ns", Name: name} }
	owner := func(cluster, name string) backend.Owner {
		return backend.Owner{Cluster: cluster, Object: types.NamespacedName{Namespace: "ns", Name: name}}
	}
	cases := map[string]struct {
		reason           string
		owner            backend.Owner
		fail             bool
		machine, network bool
	}{
		"both exist":   {"they are in use", owner("c", "x"), false, true, true},
		"neither":      {"the Cluster is here and they are not", owner("c", "y"), false, false, false},
		"machine only": {"each by its own object", owner("c", "m"), false, true, false},
		"moved":        {"the Cluster may live on elsewhere", owner("gone", "y"), false, true, true},
		"no label":     {"whose it is, is unknown", backend.Owner{}, false, true, true},
		"API error":    {"not to know is no reason", owner("c", "y"), true, true, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reader := fake.NewClientBuilder().WithScheme(s).WithObjects(
				&clusterv1.Cluster{ObjectMeta: meta("c")}, &infrav1.LocalMachine{ObjectMeta: meta("x")}, &infrav1.LocalCluster{ObjectMeta: meta("x")},
				&infrav1.LocalMachine{ObjectMeta: meta("m")},
			).WithInterceptorFuncs(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if tc.fail {
					return errors.New("boom")
				}
				return c.Get(ctx, key, o, opts...)
			}}).Build()
			var machine, network bool
			if err := (sweeper{backends: backend.Set{"played": {Sweeper: asked{tc.owner, &machine, &network}}, "nothing left": {}}, reader: reader}).Start(t.Context()); err != nil {
				t.Error(err)
			}
			if machine != tc.machine || network != tc.network {
				t.Errorf("%s: keeps machine %v, network %v", tc.reason, machine, network)
			}
		})
	}
}

func TestAddNeedsAnInstance(t *testing.T) {
	if err := Add(nil, Config{}); err == nil {
		t.Error("two management clusters on one host must not take each other's containers")
	}
}

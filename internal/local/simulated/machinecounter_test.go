package simulated

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/policy"
)

// The maximum of simulated machines is kept whatever happens at the same time, and what leaves makes room: H3.
func TestSimulatedMaximum(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := infrav1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var c machineCounter
	there := &infrav1.LocalMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "there"}}
	there.Spec.Backend.Simulated, there.Spec.ProviderID = &infrav1.SimulatedMachine{}, "slipway:///slipway-ns-there-00000000"
	if err := c.seed(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(there).Build()); err != nil {
		t.Fatal(err)
	}
	if !c.has(client.ObjectKeyFromObject(there)) {
		t.Error("what was there before counts")
	}
	if r := c.quota(client.ObjectKeyFromObject(there)); r.All != 0 || r.Own != 0 {
		t.Errorf("it is not counted against itself: %+v", r)
	}
	most := policy.Maximum{Namespace: 3, Total: 4}
	var entered atomic.Int32
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if c.enter(types.NamespacedName{Namespace: "ns", Name: fmt.Sprint(i)}, most) == "" {
				entered.Add(1)
			}
		})
	}
	wg.Wait()
	if entered.Load() != 2 {
		t.Errorf("%d entered beside the one that was there, want 2", entered.Load())
	}
	if why := c.enter(types.NamespacedName{Namespace: "ns", Name: "late"}, most); !strings.Contains(why, "maxima.simulatedNodes.namespace") {
		t.Errorf("got %q", why)
	}
	c.leave(client.ObjectKeyFromObject(there))
	c.leave(client.ObjectKeyFromObject(there))
	if why := c.enter(types.NamespacedName{Namespace: "ns", Name: "late"}, most); why != "" {
		t.Errorf("there is room again: %q", why)
	}
	if r := c.quota(types.NamespacedName{Namespace: "other"}); r.Own != 0 || r.All != 3 {
		t.Errorf("counted: %+v", r)
	}
}

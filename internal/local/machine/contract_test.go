package machine

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
	"github.com/slipwayhq/slipway/test/testkit"
)

func TestInfraMachineContract(t *testing.T) { // IM-01 to IM-06, IM-12, CT-07, CT-08
	o := &infrav1.LocalMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", Generation: 7}}
	o.Spec.ProviderID, o.Spec.FailureDomain = backend.ProviderID("n"), "a"
	s := snapshot{Object: o, Name: "n", Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Progress: &backend.Progress{Phase: backend.Succeeded},
		HostMachine: backend.Machine{Name: "n", ID: "i", State: backend.Running, Hostname: "m", Address: netip.MustParseAddr("172.16.0.2")}}
	o.Status = report(s, decide(s), reconciler.Outcome{}).Status.(infrav1.LocalMachineStatus)
	v := contract.InfraMachine(testkit.ProviderObject(t, o))
	if !v.Provisioned.Or(false) || v.ProviderID.Or("") != "slipway:///n" || v.FailureDomain.Or("") != "a" {
		t.Errorf("got %+v, %+v, %+v", v.Provisioned, v.ProviderID, v.FailureDomain)
	}
	want := []clusterv1.MachineAddress{{Type: clusterv1.MachineHostName, Address: "m"}, {Type: clusterv1.MachineInternalIP, Address: "172.16.0.2"}}
	if diff := cmp.Diff(want, v.Addresses.Or(nil)); diff != "" {
		t.Errorf("IM-04 (-want +got):\n%s", diff)
	}
	if v.Interruptible.Presence() != contract.Missing {
		t.Errorf("IM-12: containers are not taken away; got %+v", v.Interruptible)
	}
}

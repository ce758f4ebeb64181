package cluster

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

func TestInfraClusterContract(t *testing.T) { // IC-01 to IC-05, CT-07, CT-08
	o := &infrav1.LocalCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", Generation: 7}}
	o.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "172.16.0.1", Port: 6443}
	o.Spec.FailureDomains = []clusterv1.FailureDomain{{Name: "a"}}
	s := snapshot{Object: o, Cluster: &clusterv1.Cluster{}, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Network: &backend.Network{Name: "n", Subnet: netip.MustParsePrefix("172.16.0.0/18"), Gateway: netip.MustParseAddr("172.16.0.1")}}
	o.Status = report(s, decide(s), reconciler.Outcome{}).Status.(infrav1.LocalClusterStatus)
	v := contract.InfraCluster(testkit.ProviderObject(t, o))
	if e := v.ControlPlaneEndpoint.Or(contract.Endpoint{}); !v.Provisioned.Or(false) || e != (contract.Endpoint{Host: "172.16.0.1", Port: 6443}) {
		t.Errorf("got %+v, %+v", v.Provisioned, e)
	}
	if diff := cmp.Diff(o.Spec.FailureDomains, v.FailureDomains.Or(nil)); diff != "" {
		t.Errorf("IC-03 (-want +got):\n%s", diff)
	}
}

package workload

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
)

// Only an address that a status shows to be Slipway's is described in full.
func TestOwnAddresses(t *testing.T) { // RC-02
	network := func(ready metav1.ConditionStatus) *infrav1.LocalCluster {
		return &infrav1.LocalCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "i"},
			Status: infrav1.LocalClusterStatus{
				Conditions: []metav1.Condition{{Type: infrav1.NetworkReadyCondition, Status: ready}},
				Network:    infrav1.LocalClusterNetworkStatus{Subnet: "172.20.0.0/16"},
			},
		}
	}
	hosted := func(available metav1.ConditionStatus) *controlplanev1.HostedControlPlane {
		return &controlplanev1.HostedControlPlane{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"},
			Spec:       controlplanev1.HostedControlPlaneSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 12345}},
			Status: controlplanev1.HostedControlPlaneStatus{
				Conditions: []metav1.Condition{{Type: controlplanev1.AvailableCondition, Status: available}},
			},
		}
	}
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	for name, tc := range map[string]struct {
		network *infrav1.LocalCluster
		plane   *controlplanev1.HostedControlPlane
		address string
		want    bool
	}{
		"in the network":            {network(yes), hosted(no), "172.20.0.1:6443", true},
		"elsewhere":                 {network(yes), hosted(yes), "10.0.0.1:6443", false},
		"a name":                    {network(yes), hosted(yes), "intranet.example.org:6443", false},
		"network that is not there": {network(no), hosted(no), "172.20.0.1:6443", false},
		"hosted, available":         {network(no), hosted(yes), "127.0.0.1:12345", true},
		"hosted, not available":     {network(no), hosted(no), "127.0.0.1:12345", false},
		"another port of this host": {network(no), hosted(yes), "127.0.0.1:22", false},
		"no port":                   {network(yes), hosted(yes), "172.20.0.1", false},
	} {
		scheme := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{infrav1.AddToScheme, controlplanev1.AddToScheme} {
			if err := add(scheme); err != nil {
				t.Fatal(err)
			}
		}
		cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
		cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalCluster", Name: "i"}
		cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: controlplanev1.GroupVersion.Group, Kind: "HostedControlPlane", Name: "p"}
		own := ManagedAddresses{fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.network, tc.plane).Build()}
		if got := own.Include(t.Context(), cluster, tc.address); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

package webhook_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CV-01: manifests of v1beta1 are accepted, and read in either version.
func testConversion(t *testing.T, w *world) {
	for _, manifest := range []string{oldCluster, oldConfig} {
		if err := w.client.Create(t.Context(), parse(t, manifest)); err != nil {
			t.Fatal(err)
		}
	}
	key := client.ObjectKey{Namespace: "default", Name: "old"}
	got := &clusterv1.Cluster{}
	if err := w.client.Get(t.Context(), key, got); err != nil {
		t.Fatal(err)
	}
	want := clusterv1.ClusterSpec{
		ClusterNetwork: clusterv1.ClusterNetwork{Pods: clusterv1.NetworkRanges{CIDRBlocks: []string{"172.31.128.0/17"}}},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: "infrastructure.slipway.dev", Kind: "LocalCluster", Name: "old",
		},
		ControlPlaneRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: "controlplane.slipway.dev", Kind: "HostedControlPlane", Name: "old",
		},
	}
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Errorf("v1beta2 (-want +got):\n%s", diff)
	}
	config := &bootstrapv1.KubeadmConfigTemplate{}
	if err := w.client.Get(t.Context(), key, config); err != nil {
		t.Fatal(err)
	}
	if s := config.Spec.Template.Spec.JoinConfiguration.Timeouts.DiscoverySeconds; s == nil || *s != 90 {
		t.Errorf("the discovery timeout is %v, want 90 s", s)
	}
	// A field that v1beta1 does not have survives a change made in v1beta1.
	got.Spec.AvailabilityGates = []clusterv1.ClusterAvailabilityGate{{ConditionType: "Mine"}}
	got.Spec.Paused = new(false)
	if err := w.client.Update(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	old := &clusterv1beta1.Cluster{}
	if err := w.client.Get(t.Context(), key, old); err != nil {
		t.Fatal(err)
	}
	ref := corev1.ObjectReference{APIVersion: "infrastructure.slipway.dev/v1alpha1", Kind: "LocalCluster", Name: "old", Namespace: "default"}
	if diff := cmp.Diff(&ref, old.Spec.InfrastructureRef); diff != "" {
		t.Errorf("the reference in v1beta1 (-want +got):\n%s", diff)
	}
	if old.Annotations["cluster.x-k8s.io/conversion-data"] == "" {
		t.Error("the conversion data is missing in v1beta1")
	}
	old.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"172.31.64.0/18"}
	if err := w.client.Update(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Get(t.Context(), key, got); err != nil {
		t.Fatal(err)
	}
	want.ClusterNetwork.Pods.CIDRBlocks = []string{"172.31.64.0/18"}
	want.AvailabilityGates = []clusterv1.ClusterAvailabilityGate{{ConditionType: "Mine"}}
	want.Paused = new(false)
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Errorf("v1beta2 after a change in v1beta1 (-want +got):\n%s", diff)
	}
	if _, kept := got.Annotations["cluster.x-k8s.io/conversion-data"]; kept {
		t.Error("the conversion data is stored")
	}
}

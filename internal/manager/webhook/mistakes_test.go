package webhook_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// testControlPlaneMistakes: what cannot be done with a control plane is refused by the API, with what is wrong and what to do, also where the scale
// subresource asks for it.
func testControlPlaneMistakes(t *testing.T, w *world) { // KC-26, KC-27, KC-28
	plane := &controlplanev1.KubeadmControlPlane{}
	plane.Namespace, plane.Name = "default", "mistakes"
	plane.Spec.Replicas, plane.Spec.Version = new(int32(3)), "v1.36.3"
	plane.Spec.MachineTemplate.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.slipway.dev", Kind: "LocalMachineTemplate", Name: "m"}
	if err := w.client.Create(t.Context(), plane); err != nil {
		t.Fatal(err)
	}
	patched := func(patch string) error {
		return w.client.Patch(t.Context(), plane.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch)))
	}
	scaled := func(patch string) error {
		return w.client.SubResource("scale").Patch(t.Context(), plane.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch)))
	}
	const even = "spec.replicas: Forbidden: cannot be even with managed etcd: 2 members tolerate no more failures than 1; use 1 or 3"
	const none = "spec.replicas: Forbidden: cannot be 0: a cluster without a control plane Machine loses its etcd; delete the Cluster instead"
	for name, tc := range map[string]struct {
		write func(string) error
		patch string
		want  string
	}{
		"even":         {patched, `{"spec": {"replicas": 2}}`, even},
		"even, scaled": {scaled, `{"spec": {"replicas": 2}}`, even},
		"none":         {patched, `{"spec": {"replicas": 0}}`, none},
		"none, scaled": {scaled, `{"spec": {"replicas": 0}}`, none},
		"version":      {patched, `{"spec": {"version": "v1.38.0"}}`, "spec.version: Forbidden: cannot change from v1.36.3 to v1.38.0: upgrade one minor version at a time, to v1.37 first"},
		"fixed": {patched, `{"spec": {"kubeadmConfigSpec": {"clusterConfiguration": {"certificatesDir": "/d"}}}}`, "spec.kubeadmConfigSpec.clusterConfiguration.certificatesDir: " +
			"Forbidden: cannot be changed, because the cluster and its existing Machines use it; restore the previous value"},
	} {
		if err := tc.write(tc.patch); !apierrors.IsInvalid(err) || !strings.HasSuffix(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
	if err := scaled(`{"spec": {"replicas": 5}}`); err != nil {
		t.Errorf("scaled to 5: %v", err)
	}
}

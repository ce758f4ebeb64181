package controlplane

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// TestAligned: what no Machine is replaced for is as it is, and everything else as it shall be.
func TestAligned(t *testing.T) { // IP-01
	for name, tc := range map[string]struct {
		have, want func(*bootstrapv1.KubeadmConfigSpec)
		same       bool
	}{
		"nothing": {func(*bootstrapv1.KubeadmConfigSpec) {}, func(*bootstrapv1.KubeadmConfigSpec) {}, true},
		"DNS and endpoint": {func(c *bootstrapv1.KubeadmConfigSpec) { c.ClusterConfiguration.ControlPlaneEndpoint = "a:6443" },
			func(c *bootstrapv1.KubeadmConfigSpec) { c.ClusterConfiguration.DNS.ImageTag = "v2" }, true},
		"discovery": {func(c *bootstrapv1.KubeadmConfigSpec) { c.JoinConfiguration.Discovery.TLSBootstrapToken = "x" }, func(*bootstrapv1.KubeadmConfigSpec) {}, true},
		"defaults": {func(c *bootstrapv1.KubeadmConfigSpec) {
			c.Format, c.InitConfiguration.NodeRegistration.ImagePullPolicy, c.JoinConfiguration.NodeRegistration.ImagePullPolicy = bootstrapv1.CloudConfig, corev1.PullIfNotPresent, corev1.PullIfNotPresent
			c.JoinConfiguration.ControlPlane = &bootstrapv1.JoinControlPlane{}
		}, func(*bootstrapv1.KubeadmConfigSpec) {}, true},
		"local mode": {func(c *bootstrapv1.KubeadmConfigSpec) {
			c.ClusterConfiguration.FeatureGates = map[string]bool{localMode: true}
		}, func(*bootstrapv1.KubeadmConfigSpec) {}, true},
		"files": {func(*bootstrapv1.KubeadmConfigSpec) {}, func(c *bootstrapv1.KubeadmConfigSpec) { c.Files = []bootstrapv1.File{{Path: "/a"}} }, false},
		"gates": {func(*bootstrapv1.KubeadmConfigSpec) {}, func(c *bootstrapv1.KubeadmConfigSpec) {
			c.ClusterConfiguration.FeatureGates = map[string]bool{"Other": true}
		}, false},
		"pull policy": {func(*bootstrapv1.KubeadmConfigSpec) {}, func(c *bootstrapv1.KubeadmConfigSpec) {
			c.JoinConfiguration.NodeRegistration.ImagePullPolicy = corev1.PullAlways
		}, false},
		"format": {func(*bootstrapv1.KubeadmConfigSpec) {}, func(c *bootstrapv1.KubeadmConfigSpec) { c.Format = bootstrapv1.Ignition }, false},
	} {
		t.Run(name, func(t *testing.T) {
			var have, want bootstrapv1.KubeadmConfigSpec
			tc.have(&have)
			tc.want(&want)
			got := alignedConfig(have, want)
			if diff := cmp.Diff(have, got); (diff == "") != tc.same {
				t.Errorf("(-have +got):\n%s", diff)
			}
			if diff := cmp.Diff(differences(normalized(have), normalized(want)), differences(normalized(have), normalized(got))); diff != "" {
				t.Errorf("other differences than before (-want +got):\n%s", diff)
			}
		})
	}
}

package api

import (
	"testing"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// FuzzParseStored: whatever a workload cluster has stored as its configuration is refused, or can be changed to one that can be read.
func FuzzParseStored(f *testing.F) {
	for _, text := range []string{
		"apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.35.4\n",
		"apiVersion: kubeadm.k8s.io/v1beta3\napiServer:\n  extraArgs: {a: b}\n  timeoutForControlPlane: 4m0s\netcd:\n  local: {dataDir: /x, extraArgs: {c: d}}\n",
		"apiVersion: kubeadm.k8s.io/v1beta3\napiServer: 1\netcd: [a]\n", "apiVersion: 1\n", "null\n", "- a\n", "", "apiVersion: kubeadm.k8s.io/v1beta4\netcd: {external: {}}\nfeatureGates: x\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseStored(text)
		if err != nil {
			return
		}
		if err := s.ForVersion("v1.36.3"); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		wanted := bootstrapv1.ClusterConfiguration{ImageRepository: "r", FeatureGates: map[string]bool{"G": true}}
		if err := s.ApplyConfiguration(wanted); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		changed, err := s.Text()
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if _, err := ParseStored(changed); err != nil && len(text) < maxStored/2 {
			t.Errorf("%q becomes %q, which cannot be read: %v", text, changed, err)
		}
	})
}

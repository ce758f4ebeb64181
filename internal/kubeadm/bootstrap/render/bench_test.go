package render_test

import (
	"bytes"
	"testing"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/slipwayhq/slipway/internal/kubeadm/bootstrap/render"
)

// BenchmarkJoinData makes the bootstrap data of a worker from its KubeadmConfig.
func BenchmarkJoinData(b *testing.B) {
	in := render.Input{
		KubernetesVersion: "v1.36.3",
		Spec: bootstrapv1.KubeadmConfigSpec{
			Files:              []bootstrapv1.File{{Path: "/etc/motd", Content: "a worker\n"}, {Path: "/etc/sysctl.d/9.conf", Content: "vm.swappiness=0\n"}},
			Users:              []bootstrapv1.User{{Name: "admin", SSHAuthorizedKeys: []string{"ssh-ed25519 AAAA"}}},
			NTP:                bootstrapv1.NTP{Servers: []string{"ntp.example"}},
			PreKubeadmCommands: []string{"modprobe br_netfilter"},
		},
	}
	b.ReportAllocs()
	for b.Loop() {
		p, err := render.Join(in)
		if err != nil {
			b.Fatal(err)
		}
		data, err := render.RenderCloudConfig(p)
		if err != nil || !bytes.Contains(data, []byte("kubeadm join")) {
			b.Fatalf("%v\n%s", err, data)
		}
	}
}

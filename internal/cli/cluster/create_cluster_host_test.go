package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/nodeimage"
)

// What the host lacks is named before anything is created, with the command that helps.
func TestHostRoom(t *testing.T) {
	worker := nodeimage.Image{KubernetesVersion: "v1.36.3"}
	plane := nodeimage.Image{KubernetesVersion: "v1.36.3", ControlPlane: true}
	needs := clusterNeeds{Version: "v1.36.3", Workers: 2, ControlPlanes: 1, DefaultImages: true}
	roomy := hostRoom{MemoryMiB: 8000, TotalMiB: 9000, DiskMiB: 50_000, DockerRoot: "/var/lib/docker", Images: []nodeimage.Image{worker, plane}}
	for name, tc := range map[string]struct {
		reason string
		needs  func(*clusterNeeds)
		room   func(*hostRoom)
		want   []string
	}{
		"all there":       {"nothing to report", nil, nil, nil},
		"unknown":         {"what is unknown is no problem", nil, func(r *hostRoom) { *r = hostRoom{} }, nil},
		"no images":       {"each role has an image of its own", nil, func(r *hostRoom) { r.Images = []nodeimage.Image{} }, []string{"slipway image build --kubernetes-version v1.36.3 --control-plane`", "workers with Kubernetes v1.36.3; build it with `slipway image build --kubernetes-version v1.36.3`"}},
		"another version": {"an image of another version does not help", func(n *clusterNeeds) { n.Version, n.ControlPlanes = "v1.35.4", 0 }, nil, []string{"slipway image build --kubernetes-version v1.35.4`"}},
		"no workers":      {"no image is needed without nodes", func(n *clusterNeeds) { n.Version, n.Workers, n.ControlPlanes = "v1.35.4", 0, 0 }, nil, nil},
		"own images":      {"users choose their images themselves", func(n *clusterNeeds) { n.DefaultImages, n.Version = false, "v1.35.4" }, nil, nil},
		"memory":          {"the sum of all nodes counts", nil, func(r *hostRoom) { r.TotalMiB = 1000 }, []string{"3 nodes need at least 1100 MiB of memory, and it has 1000 MiB"}},
		"hosted":          {"a hosted control plane needs memory, too", func(n *clusterNeeds) { n.Workers, n.ControlPlanes = 0, 0 }, func(r *hostRoom) { r.TotalMiB = 100 }, []string{"its control plane needs at least 250 MiB"}},
		"memory in use":   {"caches of file systems count as used", nil, func(r *hostRoom) { r.MemoryMiB = 1000 }, nil},
		"disk":            {"the disk is named", nil, func(r *hostRoom) { r.DiskMiB = 1000 }, []string{"3 nodes need at least 1300 MiB of disk, and 1000 MiB are free on the disk of /var/lib/docker"}},
	} {
		t.Run(name, func(t *testing.T) {
			n, r := needs, roomy
			if tc.needs != nil {
				tc.needs(&n)
			}
			if tc.room != nil {
				tc.room(&r)
			}
			got := append(n.missingImages(r), n.shortages(r)...)
			if len(got) != len(tc.want) {
				t.Fatalf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
			for i := range got {
				if !strings.Contains(got[i], tc.want[i]) {
					t.Errorf("%s: got %q, want %q", tc.reason, got[i], tc.want[i])
				}
			}
		})
	}
}

func TestMemoryLimits(t *testing.T) {
	values := []clusterv1.ClusterVariable{
		{Name: "nodeResources", Value: apiextensionsv1.JSON{Raw: []byte(`{"cpus": 2, "memoryMiB": 2048}`)}},
		{Name: "controlPlaneResources", Value: apiextensionsv1.JSON{Raw: []byte(`{"memoryMiB": 4096}`)}},
		{Name: "nodeImage", Value: apiextensionsv1.JSON{Raw: []byte(`"a:b"`)}},
	}
	sum := memoryLimits(values, 3, 1)
	if want := int64(3*2048 + 4096); sum != want {
		t.Errorf("got %d, want %d", sum, want)
	}
	for total, want := range map[int64]bool{0: false, 10_240: false, 8000: true} {
		if got := len((clusterNeeds{LimitMiB: sum}).warnings(hostRoom{TotalMiB: total})) > 0; got != want {
			t.Errorf("with %d MiB: warned %v, want %v", total, got, want)
		}
	}
	if diff := cmp.Diff("a:b", textOf(values, "nodeImage")); diff != "" {
		t.Error(diff)
	}
}

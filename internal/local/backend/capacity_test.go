package backend_test

import (
	"strings"
	"testing"
	"time"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/local/simulated"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/test/testhost"
)

// A node offers what its Pods may use, not what the host has, nor what the kubelet keeps back: an autoscaler would make nodes for Pods that never
// fit. Clients 6.
func TestOffered(t *testing.T) { // IM-10
	backends := testhost.New().Set()
	backends[infrav1.SimulatedBackend] = simulated.New(nil, nil, time.Now)
	cases := map[string]struct {
		reason            string
		asked             infrav1.ContainerResources
		simulated         bool
		allowed           policy.Nodes
		cpu, memory, pods string
		disk              string
	}{
		"no limit":           {"all of the host", infrav1.ContainerResources{}, false, policy.Nodes{}, "8", "24476Mi", "110", "90Gi"},
		"asked for":          {"what the spec says", infrav1.ContainerResources{CPUs: 2, MemoryMiB: 4096}, false, policy.Nodes{CPUs: 4, MemoryMiB: 8192}, "2", "3996Mi", "110", "90Gi"},
		"allowed":            {"what the operator says", infrav1.ContainerResources{}, false, policy.Nodes{CPUs: 4, MemoryMiB: 8192}, "4", "8092Mi", "110", "90Gi"},
		"more than there is": {"the host has no more", infrav1.ContainerResources{CPUs: 64, MemoryMiB: 1 << 20}, false, policy.Nodes{}, "8", "24476Mi", "110", "90Gi"},
		"simulated":          {"what its backend says", infrav1.ContainerResources{}, true, policy.Nodes{CPUs: 1}, "8", "16Gi", "110", "100Gi"},
	}
	for name, tc := range cases {
		nodes := backend.CapacityCalculator{Host: backend.HostResources{Processors: 8, Memory: 24 << 30, Disk: 100 << 30, Architecture: "arm64"}, Backends: backends, Policy: policy.Configuration{Nodes: tc.allowed}}
		spec := infrav1.LocalMachineSpec{}
		spec.Backend.Container = &infrav1.ContainerMachine{Resources: tc.asked}
		if tc.simulated {
			spec.Backend = infrav1.LocalMachineBackend{Simulated: &infrav1.SimulatedMachine{}}
		}
		got, err := nodes.CapacityOf(spec)
		if err != nil {
			t.Fatal(err)
		}
		if c := got.Capacity; c.Cpu().String() != tc.cpu || c.Memory().String() != tc.memory || c.Pods().String() != tc.pods || c.StorageEphemeral().String() != tc.disk {
			t.Errorf("%s: got %v (%s)", name, c, tc.reason)
		}
		if got.NodeInfo != (infrav1.NodeInfo{Architecture: "arm64", OperatingSystem: "linux"}) {
			t.Errorf("%s: got %+v", name, got.NodeInfo)
		}
	}
}

func TestBackendNotOffered(t *testing.T) {
	got, err := backend.CapacityCalculator{Backends: backend.Set{}}.CapacityOf(infrav1.LocalMachineSpec{})
	if why := fault.As(err); why == nil || why.Reason != "BackendNotOffered" || got.Capacity != nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestThisHost(t *testing.T) {
	h, err := backend.ThisHost()
	if err != nil || h.Processors < 1 || h.Memory < 1<<20 || h.Disk < 1<<20 || h.Architecture == "" {
		t.Errorf("got %+v, %v", h, err)
	}
}

func TestTotalMemory(t *testing.T) {
	if n, err := backend.TotalMemory(strings.NewReader("MemFree: 1 kB\nMemTotal:       24688412 kB\n")); err != nil || n != 24688412<<10 {
		t.Errorf("got %d, %v", n, err)
	}
	for _, bad := range []string{"", "MemTotal: x kB\n"} {
		if _, err := backend.TotalMemory(strings.NewReader(bad)); err == nil {
			t.Errorf("%q must be an error", bad)
		}
	}
}

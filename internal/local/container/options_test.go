package container

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/types/container"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/local/backend"
)

func TestOptions(t *testing.T) {
	spec := backend.MachineSpec{
		Name: "slipway-default-a-01234567", Hostname: "a", Image: "slipway.dev/node:v1.36.3",
		Resources: backend.Resources{CPUs: 2, MemoryMiB: 4096, Processes: 1000},
		Mounts:    []backend.Mount{{HostPath: "/srv", MachinePath: "/data", ReadOnly: true}},
	}
	cases := map[string]struct {
		reason  string
		profile profile
		check   func(*container.HostConfig) bool
	}{
		"privileged": {"where the host allows it, with nothing to drop", profile{Privileged: true},
			func(h *container.HostConfig) bool {
				return h.Privileged && len(h.CapDrop) == 0 && len(h.DeviceCgroupRules) == 0
			}},
		"restricted": {"all but what the host lacks, and every device", profile{Without: []string{"SYS_RESOURCE"}},
			func(h *container.HostConfig) bool {
				return !h.Privileged && cmp.Equal([]string(h.CapAdd), []string{"ALL"}) && cmp.Equal([]string(h.CapDrop), []string{"SYS_RESOURCE"}) &&
					cmp.Equal(h.DeviceCgroupRules, []string{"a *:* rwm"}) && len(h.Devices) == 1
			}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := containerInput{Spec: spec, Labels: map[string]string{"a": "b"}, Network: "net",
				NameServers: []netip.Addr{netip.MustParseAddr("192.0.2.53"), netip.MustParseAddr("192.0.2.54")},
				Routes:      []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12"), netip.MustParsePrefix("10.244.0.0/16")},
				Address:     netip.MustParseAddr("172.31.0.2"), Profile: tc.profile, KernelLog: true}
			got := r.options()
			h := got.HostConfig
			if !tc.check(h) {
				t.Errorf("%s: got %+v", tc.reason, h)
			}
			if h.CgroupnsMode != "private" || h.Tmpfs["/run"] != "exec" || h.RestartPolicy.Name != "unless-stopped" {
				t.Errorf("a node has its own cgroups, a writable /run, and comes back with Docker; got %+v", h)
			}
			if h.NanoCPUs != 2e9 || h.Memory != 4<<30 || h.MemorySwap != h.Memory || h.PidsLimit == nil || *h.PidsLimit != 1000 {
				t.Errorf("a node has the limits that were asked for, and no swap besides; got %+v", h.Resources)
			}
			if r.Offline = true; len(h.DNSOptions) != 0 || !cmp.Equal(r.hostConfig().DNSOptions, []string{"timeout:1", "attempts:1"}) {
				t.Errorf("names that cannot be resolved are not waited for, and others are; got %v, %v", h.DNSOptions, r.hostConfig().DNSOptions)
			}
			if m := h.Mounts[0]; m.Type != "volume" || m.Target != "/var" || m.Source != spec.Name || m.VolumeOptions.Labels["a"] != "b" {
				t.Errorf("overlayfs cannot be stacked: /var needs a volume, which is found again by its name; got %+v", m)
			}
			if diff := cmp.Diff([]string{"container=docker", "SLIPWAY_ROUTES=10.244.0.0/16 10.96.0.0/12", "SLIPWAY_DNS=192.0.2.53 192.0.2.54"}, got.Config.Env); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
			if got.NetworkingConfig.EndpointsConfig["net"].IPAMConfig.IPv4Address.String() != "172.31.0.2" {
				t.Error("the node keeps its address over restarts")
			}
			if m := h.Mounts[1]; m.Source != "/srv" || m.Target != "/data" || !m.ReadOnly {
				t.Errorf("mount: got %+v", m)
			}
		})
	}
}

func TestTail(t *testing.T) {
	w := &tail{max: 4}
	for _, s := range []string{"ab", "cde", "f"} {
		if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatal(n, err)
		}
	}
	if string(w.buf) != "cdef" {
		t.Errorf("got %q, want the last four bytes", w.buf)
	}
}

// Docker starts no container that asks for more processors than there are: the node says so instead of failing again and again. Newcomer,
// mistake 6.
func TestWithinHost(t *testing.T) {
	for name, tc := range map[string]struct {
		asked, most, processors, want int32
		denied                        bool
	}{
		"less":       {1, 0, 2, 1, false},
		"more":       {64, 0, 2, 2, true},
		"operator's": {0, 4, 2, 2, false},
		"no limit":   {0, 0, 2, 0, false},
		"not known":  {64, 0, 0, 64, false},
		"as many":    {2, 4, 2, 2, false},
	} {
		asked := &infrav1.ContainerMachine{Resources: infrav1.ContainerResources{CPUs: tc.asked}}
		r := backend.MachineRequest{Object: &infrav1.LocalMachine{Spec: infrav1.LocalMachineSpec{Backend: infrav1.LocalMachineBackend{Container: asked}}}, Version: "v1.36.3"}
		r.Policy.Nodes.CPUs = tc.most
		got := withinHost(MachineCapabilities(r), asked, int(tc.processors))
		if got.Resources.CPUs != tc.want || (got.Denied != "") != tc.denied {
			t.Errorf("%s: got %d, %q", name, got.Resources.CPUs, got.Denied)
		}
	}
}

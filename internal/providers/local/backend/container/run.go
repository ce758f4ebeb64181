package container

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/slipwayhq/slipway/internal/providers/local/backend"
)

// profile is how much a node's container may do.
type profile struct {
	// Privileged is what every node wants.
	Privileged bool
	// Without are the capabilities to leave out where privileged does not work.
	Without []string
}

// request is everything that the options of a container follow from.
type request struct {
	Spec   backend.MachineSpec
	Labels map[string]string
	// Network is the name of the network that was found, and Address the node's in it.
	Network string
	Address netip.Addr
	// Routes are ranges outside the network's subnet that the node sends to the network all the same.
	Routes []netip.Prefix
	// NameServers for names outside of the cluster; none: Pods cannot resolve those.
	NameServers []netip.Addr
	Profile     profile
	// Offline: names outside of the network cannot be resolved, for which nothing has to wait long.
	Offline bool
	// Modules and KernelLog are true where the host has /lib/modules and /dev/kmsg to share.
	Modules, KernelLog bool
}

// options returns what Docker is asked for. A node needs its own cgroup namespace, a writable /run and /tmp, and a
// volume on /var, because overlayfs cannot be stacked on Docker's. The volume has the container's name: one without a
// name would stay for ever when someone removes the container by hand.
func (r request) options() client.ContainerCreateOptions {
	return client.ContainerCreateOptions{
		Name:       r.Spec.Name,
		Config:     &container.Config{Hostname: r.Spec.Hostname, Image: r.Spec.Image, Labels: r.Labels, Env: r.environment()},
		HostConfig: r.hostConfig(),
		NetworkingConfig: &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{
			r.Network: {IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: r.Address}},
		}},
	}
}

// environment names routes and name servers for the image's entrypoint. Nothing secret may stand here: everybody who can
// use Docker can read it.
func (r request) environment() []string {
	env := []string{"container=docker"}
	if len(r.Routes) > 0 {
		env = append(env, "SLIPWAY_ROUTES="+strings.Join(slices.Sorted(slices.Values(texts(r.Routes))), " "))
	}
	if len(r.NameServers) > 0 {
		env = append(env, "SLIPWAY_DNS="+strings.Join(texts(r.NameServers), " "))
	}
	return env
}

func texts[T fmt.Stringer](list []T) (out []string) {
	for _, item := range list {
		out = append(out, item.String())
	}
	return out
}

func (r request) hostConfig() *container.HostConfig {
	h := &container.HostConfig{
		NetworkMode:   container.NetworkMode(r.Network),
		CgroupnsMode:  container.CgroupnsModePrivate,
		SecurityOpt:   []string{"seccomp=unconfined", "apparmor=unconfined"},
		Tmpfs:         map[string]string{"/run": "exec", "/tmp": "exec"},
		RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyUnlessStopped},
		LogConfig:     container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": "10m", "max-file": "2"}},
		Mounts:        r.mounts(),
		Resources:     r.resources(),
	}
	if r.Offline {
		h.DNSOptions = []string{"timeout:1", "attempts:1"}
	}
	if r.Profile.Privileged {
		h.Privileged = true
		return h
	}
	h.CapAdd, h.CapDrop = []string{"ALL"}, r.Profile.Without
	h.Resources.DeviceCgroupRules = []string{"a *:* rwm"}
	if r.KernelLog { // the kubelet reads it
		h.Resources.Devices = []container.DeviceMapping{{PathOnHost: kernelLog, PathInContainer: kernelLog, CgroupPermissions: "rwm"}}
	}
	return h
}

// resources are the limits that the node as a whole has, all of its Pods included.
func (r request) resources() container.Resources {
	const nano, mebi = 1e9, 1 << 20
	want := r.Spec.Resources
	out := container.Resources{NanoCPUs: int64(want.CPUs) * nano, Memory: want.MemoryMiB * mebi, MemorySwap: want.MemoryMiB * mebi}
	if want.Processes > 0 {
		out.PidsLimit = &want.Processes
	}
	return out
}

func (r request) mounts() []mount.Mount {
	out := []mount.Mount{{Type: mount.TypeVolume, Source: r.Spec.Name, Target: "/var",
		VolumeOptions: &mount.VolumeOptions{Labels: r.Labels}}}
	for _, m := range r.Spec.Mounts {
		out = append(out, mount.Mount{Type: mount.TypeBind, Source: m.HostPath, Target: m.MachinePath, ReadOnly: m.ReadOnly})
	}
	if r.Modules {
		out = append(out, mount.Mount{Type: mount.TypeBind, Source: modulesFolder, Target: modulesFolder, ReadOnly: true})
	}
	return out
}

// Where the kubelet looks for processes that ran out of memory, and kube-proxy and the network add-on for kernel modules.
const kernelLog, modulesFolder = "/dev/kmsg", "/lib/modules"

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

	"github.com/slipwayhq/slipway/internal/local/backend"
)

// profile contains the privileges of a node's container. [Engine.Create] tries a privileged one first.
type profile struct {
	// Privileged is preferred for every node.
	Privileged bool
	// Without lists the capabilities to drop if the host refuses privileged containers.
	Without []string
}

// containerInput contains all input for the options of a node's container, which [Engine.Create] collects.
type containerInput struct {
	Spec   backend.MachineSpec
	Labels map[string]string
	// Network is the name of the existing network, and Address the node's address in it.
	Network string
	Address netip.Addr
	// Routes are ranges outside of the network's subnet that the node routes to the network.
	Routes []netip.Prefix
	// NameServers resolve names outside of the cluster. Empty: Pods cannot resolve such names.
	NameServers []netip.Addr
	Profile     profile
	// Offline is set if names outside of the network cannot be resolved, so DNS timeouts are short.
	Offline bool
	// Modules and KernelLog are set if the host has /lib/modules and /dev/kmsg to share.
	Modules, KernelLog bool
}

// options returns the options for Docker. A node needs its own cgroup namespace, a writable /run and /tmp, and a volume
// on /var, because overlayfs cannot be stacked on Docker's overlayfs. The volume has the container's name, because an
// anonymous volume would leak when a user removes the container by hand. [Engine.Create] calls it.
func (r containerInput) options() client.ContainerCreateOptions {
	return client.ContainerCreateOptions{
		Name:       r.Spec.Name,
		Config:     &container.Config{Hostname: r.Spec.Hostname, Image: r.Spec.Image, Labels: r.Labels, Env: r.environment()},
		HostConfig: r.hostConfig(),
		NetworkingConfig: &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{
			r.Network: {IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: r.Address}},
		}},
	}
}

// environment contains the routes and name servers for the entrypoint of the node image, which defines the names of the
// variables. It must not contain secrets, because everybody with access to Docker can read it.
func (r containerInput) environment() []string {
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

func (r containerInput) hostConfig() *container.HostConfig {
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

// resources are the limits of the whole node, including all of its Pods.
func (r containerInput) resources() container.Resources {
	const nano, mebi = 1e9, 1 << 20
	want := r.Spec.Resources
	out := container.Resources{NanoCPUs: int64(want.CPUs) * nano, Memory: want.MemoryMiB * mebi, MemorySwap: want.MemoryMiB * mebi}
	if want.Processes > 0 {
		out.PidsLimit = &want.Processes
	}
	return out
}

func (r containerInput) mounts() []mount.Mount {
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

// Files of the host that nodes share. The kubelet looks for out-of-memory kills in kernelLog; kube-proxy and the
// network add-on load kernel modules from modulesFolder.
const kernelLog, modulesFolder = "/dev/kmsg", "/lib/modules"

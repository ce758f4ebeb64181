package container

import (
	"cmp"
	"context"
	"fmt"
	"time"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/policy"
)

// defaultTimeout is the default of the API, for objects that were stored without it.
const defaultTimeout = 300 * time.Second

// Backend returns the engine as a backend, with the load balancers if this host can run them. The provider (package
// local) calls it.
func (e *Engine) Backend(b backend.Balancers) backend.Backend {
	return backend.Backend{Networks: e, Machines: e, Scripts: e, Kubelets: e, Watcher: e, Sweeper: e, Balancers: b, EtcdRecovery: backend.EtcdMembers{EtcdShell: e}}
}

// Capabilities implements backend.Machines for the LocalMachine controller, with the limits of this host.
func (e *Engine) Capabilities(r backend.MachineRequest) backend.Capabilities {
	return withinHost(MachineCapabilities(r), r.Object.Spec.Backend.Container, e.host.Processors())
}

// withinHost denies requests for more processors than the host has, because Docker does not start such a container.
// processors is 0 if the number is unknown.
func withinHost(t backend.Capabilities, asked *infrav1.ContainerMachine, processors int) backend.Capabilities {
	if processors == 0 {
		return t
	}
	if asked != nil && int(asked.Resources.CPUs) > processors && t.Denied == "" {
		t.Denied = fmt.Sprintf("This host has %d processors, so a node cannot have %d: request fewer in spec.backend.container.resources", processors, asked.Resources.CPUs)
	}
	t.Resources.CPUs = min(t.Resources.CPUs, int32(processors))
	return t
}

func (e *Engine) NetworkCapabilities(policy.Configuration) backend.NetworkCapabilities {
	return backend.NetworkCapabilities{}
}

// MachineCapabilities returns the properties of a node's container that follow from its spec and the operator's
// configuration. It is a function of its own because the tests of the controllers use it without Docker.
func MachineCapabilities(r backend.MachineRequest) backend.Capabilities {
	var asked infrav1.ContainerMachine
	if c := r.Object.Spec.Backend.Container; c != nil {
		asked = *c
	}
	most := r.Policy.Nodes
	t := backend.Capabilities{
		Scripted: true, Networked: true, ReachesEtcd: true,
		Resources: backend.Resources{
			CPUs: cmp.Or(asked.Resources.CPUs, most.CPUs), MemoryMiB: cmp.Or(asked.Resources.MemoryMiB, most.MemoryMiB),
			Processes: cmp.Or(asked.Resources.Processes, most.Processes),
		},
		Timeout: cmp.Or(time.Duration(max(0, asked.BootstrapTimeoutSeconds))*time.Second, defaultTimeout),
		Denied:  denied(r, asked), Maximum: r.Policy.Maxima.Nodes, MaximumSetting: "maxima.nodes", Restart: "docker start " + r.Name,
	}
	switch {
	case asked.Image != "":
		t.Image = asked.Image
	case r.Version != "":
		t.Image, t.ImageVersion = backend.DefaultImage(r.Version, r.ControlPlane), r.Version
	default:
		t.MissingSetting = "The node image is unknown: set spec.version of the Machine (or MachinePool), or spec.backend.container.image"
	}
	for _, m := range asked.ExtraMounts {
		t.Mounts = append(t.Mounts, backend.Mount{HostPath: m.HostPath, MachinePath: m.ContainerPath, ReadOnly: m.ReadOnly})
	}
	return t
}

// denied returns the reason why the operator's policy denies the spec, and an empty string if it allows the spec.
// Mounts are checked as written, without access to the host, so that the result does not reveal which paths exist on
// it.
func denied(r backend.MachineRequest, asked infrav1.ContainerMachine) string {
	if r.Object.Spec.Backend.Container == nil {
		return ""
	}
	if asked.Image != "" {
		if why := r.Policy.DeniedImage(asked.Image); why != "" {
			return why
		}
	}
	for _, m := range asked.ExtraMounts {
		if why := r.Policy.DeniedMount(r.Object.Namespace, m.HostPath, m.ReadOnly); why != "" {
			return why
		}
	}
	return r.Policy.DeniedResources(asked.Resources.CPUs, asked.Resources.MemoryMiB, asked.Resources.Processes)
}

// CheckQuota implements backend.Machines. It returns the number of containers and the resolved mounts of the new
// container.
func (e *Engine) CheckQuota(ctx context.Context, spec backend.MachineSpec) (backend.Quota, error) {
	view, err := e.readHost(ctx)
	if err != nil {
		return backend.Quota{}, err
	}
	quota, err := backend.QuotaFor(spec, view.machines(), func(hostPath string) (string, error) { return e.ResolveMount(ctx, hostPath) })
	quota.HostView = view
	return quota, err
}

package machine

import (
	"cmp"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
)

// What the operator allows is asked before a container is made, and only then: one that is there goes on running when
// the policy becomes stricter.

// deniedUnseen returns what of the spec is not allowed, whatever is on the host; empty if nothing is. Mounts are asked
// about as they are written here, so that nobody finds out by them what is on the host.
func (s Snapshot) deniedUnseen() string {
	c := s.Object.Spec.Backend.Container
	if c == nil {
		return ""
	}
	if c.Image != "" {
		if why := s.Policy.DeniedImage(c.Image); why != "" {
			return why
		}
	}
	for _, m := range c.ExtraMounts {
		if why := s.Policy.DeniedMount(s.Object.Namespace, m.HostPath, m.ReadOnly); why != "" {
			return why
		}
	}
	return s.Policy.DeniedResources(c.Resources.CPUs, c.Resources.MemoryMiB, c.Resources.Processes)
}

// deniedRoom returns what is not allowed as the host is; empty if nothing is.
func (s Snapshot) deniedRoom() string {
	for _, m := range s.Room.Mounts {
		if why := s.Policy.DeniedMount(s.Object.Namespace, m.HostPath, m.ReadOnly); why != "" {
			return why
		}
	}
	return s.Policy.Maxima.Nodes.Exceeded("maxima.nodes", s.Object.Namespace, s.Room.Own, s.Room.All)
}

// resources are what was asked for, else the most that is allowed.
func (s Snapshot) resources() backend.Resources {
	var asked infrav1.ContainerResources
	if c := s.Object.Spec.Backend.Container; c != nil {
		asked = c.Resources
	}
	most := s.Policy.Nodes
	return backend.Resources{
		CPUs: cmp.Or(asked.CPUs, most.CPUs), MemoryMiB: cmp.Or(asked.MemoryMiB, most.MemoryMiB), Processes: cmp.Or(asked.Processes, most.Processes),
	}
}

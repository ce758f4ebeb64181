package cluster

import (
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/redact"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// Units of a host's log: the unit that is shown by default, and the name that stands for the output of the bootstrap
// data. The script of remote.Host.Logs recognizes that name.
const defaultUnit, bootstrapUnit = "kubelet", "bootstrap"

// host writes the journal of a node on a host over SSH. It reports whether the management cluster has such nodes.
// [logsFlags.node] calls it if no container has the name, or with --kubeconfig.
func (f logsFlags) host(ctx context.Context, e term.Env, name string) (hasHosts bool, err error) {
	selected := management.Flags{Kubeconfig: f.kubeconfig, Context: f.context, DataDir: f.dataDir, Namespace: f.namespace}
	c, err := selected.Connect(e)
	if err != nil {
		return false, err
	}
	list := &infrav1.SSHMachineList{}
	if err := c.Client.List(ctx, list, client.InNamespace(f.namespace)); err != nil {
		return false, c.Explain(err)
	}
	m, err := f.sshMachine(list.Items, name)
	if err == nil {
		err = c.Explain(f.hostLog(ctx, e, c, m))
	}
	return len(list.Items) > 0, err
}

// sshMachine returns the SSHMachine with the name, or whose Node has the name.
func (f logsFlags) sshMachine(all []infrav1.SSHMachine, name string) (*infrav1.SSHMachine, error) {
	byName := map[string]*infrav1.SSHMachine{}
	var names []string
	for i := range all {
		m := &all[i]
		known := []string{m.Name}
		for _, a := range m.Status.Addresses {
			if a.Type == clusterv1.MachineHostName {
				known = append(known, a.Address)
			}
		}
		for _, n := range known {
			if key := m.Namespace + "." + n; byName[key] == nil {
				byName[key] = m
				names = append(names, key)
			}
		}
	}
	found, err := candidates{"node on a host over SSH", "in the management cluster", names}.choose(name, f.namespace)
	return byName[found], err
}

// hostLog writes the journal of the units on the host of an SSHMachine. The status of an SSHMachine is not trusted: the
// SSHHost must have the claim of the machine. A claim reserves a host for one machine.
func (f logsFlags) hostLog(ctx context.Context, e term.Env, c *management.Connection, m *infrav1.SSHMachine) error {
	if f.follow {
		return fault.New(fault.Invalid, reasonNoLog, "the log of a host over SSH cannot be followed; leave out --follow")
	}
	ref := m.Status.HostRef
	if ref == nil {
		return fault.New(fault.Invalid, reasonNoLog, "SSHMachine %s/%s has no host yet; \"slipway describe cluster\" has the reason", m.Namespace, m.Name)
	}
	h := &infrav1.SSHHost{}
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, h); err != nil {
		return err
	}
	if !inventory.HasClaim(h, m) {
		return fault.New(fault.Invalid, reasonNoLog, "SSHHost %s/%s does not have the claim of SSHMachine %s/%s; \"slipway hosts logs\" shows the logs of a host without a machine", h.Namespace, h.Name, m.Namespace, m.Name)
	}
	target, err := inventory.Target(ctx, c.Client, h, policy.Configuration{})
	if err != nil {
		return err
	}
	pool := remote.NewPool(remote.Limits{})
	defer pool.Close()
	host, err := pool.Connect(ctx, target)
	if err != nil {
		return err
	}
	return f.writeHostLog(ctx, e, host)
}

// writeHostLog writes the journals, each below the name of its unit if there are several.
func (f logsFlags) writeHostLog(ctx context.Context, e term.Env, h *remote.Host) error {
	units, lines := f.units, f.lines
	switch {
	case f.bootstrap:
		units = []string{bootstrapUnit}
	case len(units) == 0:
		units = []string{defaultUnit}
	}
	if lines < 0 {
		lines = remote.MaxLogLines
	}
	out := redact.NewEscapeWriter(e.Out)
	for _, unit := range units {
		text, err := h.Logs(ctx, unit, lines)
		if err != nil {
			return err
		}
		if len(units) > 1 {
			_, _ = fmt.Fprintf(e.Out, "==> %s <==\n", unit)
		}
		if _, err := out.Write(text); err != nil {
			return err
		}
	}
	return nil
}

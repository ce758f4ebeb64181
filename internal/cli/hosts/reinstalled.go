package hosts

import (
	"context"
	"fmt"
	"maps"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// reinstalledFlags are the flags of "hosts reinstalled".
type reinstalledFlags struct {
	selector     string
	yes, noCheck bool
}

// reinstalledCommand returns the "hosts reinstalled" command, for [Command].
func reinstalledCommand(e term.Env) *cobra.Command {
	var f reinstalledFlags
	cmd := &cobra.Command{
		Use:   "reinstalled NAME...",
		Short: "Confirm that hosts were reinstalled, so that other namespaces can use them",
		Long: `Confirm that you have reinstalled the operating system of hosts. A used host is offered only to the
namespace that used it last, because its users had the rights of root on it. This command removes
the record of that use. It first connects to each host and refuses one that still has files of
Slipway. That a host has none proves nothing: confirm only what you know to be reinstalled. If the
host keys are new, run "slipway hosts update NAME --rescan" before.`,
		Example: "  slipway hosts reinstalled rack1-1\n  slipway hosts reinstalled --selector rack=a --yes",
		Args:    namesOrSelector(&f.selector),
	}
	connection := management.AddFlags(cmd.Flags())
	cmd.Flags().StringVarP(&f.selector, "selector", "l", "", "labels of the hosts that were reinstalled")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "skip the confirmation prompt")
	cmd.Flags().BoolVar(&f.noCheck, "no-check", false, "do not connect to the hosts")
	cmd.RunE = connection.RunE(e, func(ctx context.Context, c *management.Connection, args []string) error {
		hosts, err := selectHosts(ctx, c, args, f.selector)
		if err != nil {
			return err
		}
		return f.run(ctx, e, c, hosts)
	})
	return cmd
}

// run checks all hosts, prompts for confirmation, and then removes the annotation of the last namespace from each host.
// Package inventory reads that annotation when it offers hosts to namespaces.
func (f reinstalledFlags) run(ctx context.Context, e term.Env, c *management.Connection, hosts []*infrav1.SSHHost) error {
	pool := remote.NewPool(remote.Limits{})
	defer pool.Close()
	for _, h := range hosts {
		if machine := machineOf(h); machine != "" {
			return fault.New(fault.Invalid, reasonInUse, "SSHHost %s is used by SSHMachine %s, or was not cleaned after it; wait until it is free", h.Name, machine)
		}
		if f.noCheck {
			continue
		}
		if err := checkReinstalled(ctx, c, pool, h); err != nil {
			return err
		}
	}
	if !f.yes {
		if err := e.Confirm(fmt.Sprintf("offer %s to other namespaces, because you have reinstalled the operating system", count(hosts))); err != nil {
			return err
		}
	}
	w := kube.NewWriter(c.Client, writer)
	for _, h := range hosts {
		last := inventory.LastNamespace(h)
		if last == "" {
			_, _ = fmt.Fprintf(e.Out, "SSHHost %s/%s was used by no namespace\n", h.Namespace, h.Name)
			continue
		}
		// The write fails if a machine has claimed the host since it was read.
		if err := w.Patch(ctx, h, func(o client.Object) {
			annotations := maps.Clone(o.GetAnnotations())
			delete(annotations, infrav1.LastNamespaceAnnotation)
			o.SetAnnotations(annotations)
		}); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(e.Out, "SSHHost %s/%s is offered to other namespaces than %s\n", h.Namespace, h.Name, last)
	}
	return nil
}

// checkReinstalled returns an error if a host has files of Slipway, which a reinstallation deletes.
func checkReinstalled(ctx context.Context, c *management.Connection, pool *remote.Pool, h *infrav1.SSHHost) error {
	host, err := connect(ctx, c, pool, h)
	if err != nil {
		return err
	}
	facts, err := host.Facts(ctx)
	if err != nil {
		return err
	}
	if facts.HasRecord || facts.Cleaning != nil || len(facts.Bundles) > 0 {
		return fault.New(fault.Invalid, "NotReinstalled", "host %s has files of Slipway in /etc/slipway or /var/lib/slipway, so it was not reinstalled; reinstall it, or set spec.reuse to Any if you trust all users", h.Name)
	}
	return nil
}

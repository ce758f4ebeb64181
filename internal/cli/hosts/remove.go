package hosts

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// removeCommand returns the "hosts remove" command, for [Command].
func removeCommand(e term.Env) *cobra.Command {
	var selector string
	var yes, leave bool
	cmd := &cobra.Command{
		Use:   "remove NAME...",
		Short: "Remove free hosts from the inventory",
		Long: `Remove hosts from the inventory: delete their bundles, their SSHHosts, and the Secrets that "slipway
hosts add" created. A host that a machine uses is not removed; delete the machine first. Use
--leave-bundles for a host that does not respond any more.`,
		Example: "  slipway hosts remove rack1-1\n  slipway hosts remove broken-1 --leave-bundles",
		Args:    namesOrSelector(&selector),
	}
	connection := management.AddFlags(cmd.Flags())
	cmd.Flags().StringVarP(&selector, "selector", "l", "", "labels of the hosts to remove")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "skip the confirmation prompt")
	cmd.Flags().BoolVar(&leave, "leave-bundles", false, "do not connect to the hosts, and leave the bundles on them")
	cmd.RunE = connection.RunE(e, func(ctx context.Context, c *management.Connection, args []string) error {
		hosts, err := selectHosts(ctx, c, args, selector)
		if err != nil {
			return err
		}
		for _, h := range hosts {
			if machine := machineOf(h); machine != "" {
				return fault.New(fault.Invalid, reasonInUse, "SSHHost %s is used by SSHMachine %s; delete its Machine first, or scale its cluster down", h.Name, machine)
			}
		}
		if !yes {
			if err := e.Confirm(fmt.Sprintf("remove %s from the inventory", count(hosts))); err != nil {
				return err
			}
		}
		pool := remote.NewPool(remote.Limits{})
		defer pool.Close()
		for _, h := range hosts {
			if err := removeHost(ctx, e, c, removal{pool: pool, host: h, leave: leave}); err != nil {
				return err
			}
		}
		return nil
	})
	return cmd
}

// removal is a host to remove.
type removal struct {
	pool  *remote.Pool
	host  *infrav1.SSHHost
	leave bool
}

// removeHost deletes the bundles on a host unless --leave-bundles is set, then its SSHHost. If the bundles cannot be
// deleted, the SSHHost remains, so that the command can be repeated.
func removeHost(ctx context.Context, e term.Env, c *management.Connection, r removal) error {
	if !r.leave {
		connected, err := connect(ctx, c, r.pool, r.host)
		if err == nil {
			err = connected.RemoveBundles(ctx)
		}
		if f := fault.As(err); f != nil && f.Reason == remote.ReasonClaimedByAnother {
			return fault.New(f.Kind, reasonInUse, "host %s is used by another management cluster or was not cleaned; \"slipway hosts list\" shows its state (use --leave-bundles to remove the SSHHost only)", r.host.Name).From(err)
		}
		if err != nil {
			return fmt.Errorf("deleting the bundles of host %s (use --leave-bundles to leave them): %w", r.host.Name, err)
		}
	}
	// The status changes with each check. If a machine has claimed the host since it was read, the deletion waits until
	// the host is free. The Secrets that belong to the SSHHost are deleted afterwards.
	if err := kube.NewWriter(c.Client, writer).DeleteAnyway(ctx, r.host); err != nil {
		return err
	}
	_, err := fmt.Fprintf(e.Out, "SSHHost %s/%s removed\n", r.host.Namespace, r.host.Name)
	return err
}

package hosts

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// pollInterval is the interval at which a drain or a reboot is checked.
const pollInterval = 2 * time.Second

// rebootCommand returns the "hosts reboot" command, for [Command]. It calls [reboot.runWithin] for one host after the
// other (reboot_run.go).
func rebootCommand(e term.Env) *cobra.Command {
	var selector string
	var yes bool
	cmd := &cobra.Command{
		Use:   "reboot NAME...",
		Short: "Reboot hosts one after the other, with their nodes drained",
		Long: `Reboot hosts, for example after patches of their operating system. The hosts are rebooted one after
the other. A node is cordoned and drained first; PodDisruptionBudgets and MachineDrainRules are
respected, and MachineHealthChecks do not replace its Machine meanwhile. The next host follows when
the node is Ready again and was uncordoned. If a step fails, the command stops, and the node stays
cordoned; run the command again to continue. A free host is in maintenance while it reboots.`,
		Example: "  slipway hosts reboot rack1-1\n  slipway hosts reboot --selector rack=a --yes",
		Args:    namesOrSelector(&selector),
	}
	connection := management.AddFlags(cmd.Flags())
	cmd.Flags().StringVarP(&selector, "selector", "l", "", "labels of the hosts to reboot")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "skip the confirmation prompt")
	timeout := term.AddWaitTimeout(cmd.Flags(), 15*time.Minute, "how long to wait for each host")
	cmd.RunE = connection.RunE(e, func(ctx context.Context, c *management.Connection, args []string) error {
		hosts, err := selectHosts(ctx, c, args, selector)
		if err != nil {
			return err
		}
		if !yes {
			if err := e.Confirm(fmt.Sprintf("reboot %s, one after the other", count(hosts))); err != nil {
				return err
			}
		}
		pool := remote.NewPool(remote.Limits{})
		defer pool.Close()
		for _, h := range hosts {
			r := reboot{env: e, connection: c, pool: pool, host: h, interval: pollInterval, workload: workloadClient}
			if err := r.runWithin(ctx, *timeout); err != nil {
				return err
			}
		}
		return nil
	})
	return cmd
}

package hosts

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// Reasons of faults.
const (
	reasonNoHost   = "HostNotFound"
	reasonInUse    = "HostInUse"
	reasonUsage    = "Usage"
	reasonChecked  = "ChecksFailed"
	reasonNotAdded = "HostsNotAdded"
)

// Command returns the hosts command, for package cli.
func Command(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hosts",
		Short: "Manage the Linux machines that become nodes over SSH",
		Long: `Manage the inventory of Linux machines that Slipway reaches over SSH. Each is an SSHHost in the
management cluster, with its credentials in a Secret of the same namespace. SSHMachines of the
namespaces to which a host is offered can claim it.`,
	}
	cmd.AddCommand(addCommand(e), listCommand(e), checkCommand(e), updateCommand(e), removeCommand(e), rebootCommand(e), logsCommand(e), reinstalledCommand(e))
	term.MarkGroup(cmd)
	return cmd
}

// getHost reads an SSHHost. If it does not exist, the error lists the existing ones. "hosts update", "hosts logs" and
// [selectHosts] call it.
func getHost(ctx context.Context, c *management.Connection, name string) (*infrav1.SSHHost, error) {
	host := &infrav1.SSHHost{}
	err := c.Client.Get(ctx, c.Key(name), host)
	if !apierrors.IsNotFound(err) {
		return host, err
	}
	all := &infrav1.SSHHostList{}
	if err := c.Client.List(ctx, all, client.InNamespace(c.Namespace)); err != nil {
		return nil, err
	}
	var names []string
	for _, h := range all.Items {
		names = append(names, h.Name)
	}
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return nil, fault.New(fault.Gone, reasonNoHost, "namespace %s has no SSHHost; use -n for another namespace, or add one with \"slipway hosts add ADDRESS\"", c.Namespace)
	case len(names) > 20:
		names = append(names[:20], "…")
	}
	return nil, fault.New(fault.Gone, reasonNoHost, "namespace %s has no SSHHost %q; it has: %s", c.Namespace, name, strings.Join(names, ", "))
}

// selectHosts returns the named hosts in the given order, or the hosts that match a label selector, sorted by name. The
// subcommands for several hosts call it: check, reboot, reinstalled and remove.
func selectHosts(ctx context.Context, c *management.Connection, names []string, selector string) ([]*infrav1.SSHHost, error) {
	var out []*infrav1.SSHHost
	if selector == "" {
		for i, name := range names {
			if slices.Contains(names[:i], name) {
				continue
			}
			host, err := getHost(ctx, c, name)
			if err != nil {
				return nil, err
			}
			out = append(out, host)
		}
		return out, nil
	}
	parsed, err := parseSelector(selector)
	if err != nil {
		return nil, err
	}
	all := &infrav1.SSHHostList{}
	if err := c.Client.List(ctx, all, client.InNamespace(c.Namespace), client.MatchingLabelsSelector{Selector: parsed}); err != nil {
		return nil, err
	}
	for i := range all.Items {
		out = append(out, &all.Items[i])
	}
	slices.SortFunc(out, func(a, b *infrav1.SSHHost) int { return strings.Compare(a.Name, b.Name) })
	if len(out) == 0 {
		return nil, fault.New(fault.Gone, reasonNoHost, "no SSHHost in namespace %s has the labels %s", c.Namespace, selector)
	}
	return out, nil
}

// connect connects to a host with its credentials in the management cluster. The caller closes the pool. The
// subcommands call it for hosts that exist; "hosts add" and "hosts update" connect with the new settings instead.
func connect(ctx context.Context, c *management.Connection, pool *remote.Pool, host *infrav1.SSHHost) (*remote.Host, error) {
	target, err := inventory.Target(ctx, c.Client, host, policy.Configuration{})
	if err != nil {
		return nil, err
	}
	return pool.Connect(ctx, target)
}

// count formats the names of hosts for the confirmation prompts of reboot, reinstalled and remove.
func count(hosts []*infrav1.SSHHost) string {
	var names []string
	for _, h := range hosts {
		names = append(names, h.Name)
	}
	if len(names) == 1 {
		return "host " + names[0]
	}
	return fmt.Sprintf("%d hosts (%s)", len(names), condition.Names(names))
}

// namesOrSelector requires either names of hosts or the flag --selector, for the subcommands that call [selectHosts].
func namesOrSelector(selector *string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 && *selector == "":
			return fault.New(fault.Invalid, reasonUsage, "provide the names of hosts, or --selector")
		case len(args) > 0 && *selector != "":
			return fault.New(fault.Invalid, reasonUsage, "provide either the names of hosts or --selector")
		}
		return nil
	}
}

// machineOf returns the SSHMachine that has claimed a host, as NAMESPACE/NAME; empty for a free host. A claim reserves
// a host for one SSHMachine until the host was cleaned after it. The subcommands print the result; check, list,
// reinstalled and remove decide by the result whether a host is in use.
func machineOf(host *infrav1.SSHHost) string {
	if host.Status.Claim == nil {
		return ""
	}
	return fmt.Sprintf("%s/%s", host.Status.Claim.Namespace, host.Status.Claim.Name)
}

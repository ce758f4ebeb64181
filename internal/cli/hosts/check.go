package hosts

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/redact"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// checkCommand returns the "hosts check" command, for [Command].
func checkCommand(e term.Env) *cobra.Command {
	var selector string
	var controlPlane bool
	cmd := &cobra.Command{
		Use:   "check NAME...",
		Short: "Connect to hosts and run all preflight checks",
		Long: `Connect to hosts from this machine with the keys in the management cluster, and run all preflight
checks. Nothing is changed on the hosts. The exit status is not 0 if a check prevents a host from
becoming a node. A host that was released has the checklist of its last cleaning.`,
		Example: "  slipway hosts check rack1-1\n  slipway hosts check --selector rack=a --control-plane",
		Args:    namesOrSelector(&selector),
	}
	connection := management.AddFlags(cmd.Flags())
	cmd.Flags().StringVarP(&selector, "selector", "l", "", "labels of the hosts to check")
	cmd.Flags().BoolVar(&controlPlane, "control-plane", false, "check whether the hosts can run a control plane")
	format := term.AddOutputFlag(cmd.Flags())
	cmd.RunE = connection.RunE(e, func(ctx context.Context, c *management.Connection, args []string) error {
		hosts, err := selectHosts(ctx, c, args, selector)
		if err != nil {
			return err
		}
		pool := remote.NewPool(remote.Limits{})
		defer pool.Close()
		results := []checked{}
		for _, h := range hosts {
			results = append(results, check(ctx, c, pool, h, controlPlane))
		}
		if err := format.Print(e.Out, results, func(w io.Writer) error { return printChecks(w, results) }); err != nil {
			return err
		}
		return failedChecks(results)
	})
	return cmd
}

// checked is the result for a host in the structured output of "hosts check". Scripts depend on the field names.
type checked struct {
	Name     string    `json:"name"`
	Address  string    `json:"address"`
	Error    string    `json:"error,omitempty"`
	InUseBy  string    `json:"inUseBy,omitempty"`
	Findings []finding `json:"findings"`
	// LastCleaning is the checklist of the last cleaning of a host that no machine has claimed since.
	LastCleaning *infrav1.SSHHostCleaningRecord `json:"lastCleaning,omitempty"`
}

// finding is a problem that a preflight check has found. A fatal one prevents that the host becomes a node.
type finding struct {
	Check   string `json:"check"`
	Problem string `json:"problem"`
	Remedy  string `json:"remedy"`
	Fatal   bool   `json:"fatal"`
}

// check checks one host. A host in use is only connected to, because a node fails checks for a fresh host.
func check(ctx context.Context, c *management.Connection, pool *remote.Pool, h *infrav1.SSHHost, controlPlane bool) checked {
	out := checked{Name: h.Name, Address: h.Spec.Address, InUseBy: machineOf(h), Findings: []finding{}, LastCleaning: h.Status.LastCleaning}
	host, err := connect(ctx, c, pool, h)
	if err == nil && out.InUseBy == "" {
		var found []remote.Finding
		found, err = host.Preflight(ctx, remote.PreflightOptions{ControlPlane: controlPlane, ManagedBundle: !inventory.HasContainerd(h.Status.Facts.ContainerRuntime)})
		for _, f := range found {
			out.Findings = append(out.Findings, finding{Check: f.Check, Problem: f.Problem, Remedy: f.Remedy, Fatal: f.Fatal})
		}
	}
	if err != nil {
		out.Error = fault.UserMessage(err)
	}
	return out
}

func printChecks(w io.Writer, results []checked) error {
	for _, r := range results {
		status := "passed"
		switch {
		case r.Error != "":
			status = "failed: " + r.Error
		case r.InUseBy != "":
			status = "reachable; it is used by SSHMachine " + r.InUseBy
		case r.fails():
			status = "cannot become a node"
		}
		if _, err := fmt.Fprintf(w, "%s (%s): %s\n", r.Name, r.Address, status); err != nil {
			return err
		}
		if c := r.LastCleaning; c != nil && c.Time != nil {
			text := strings.Join(c.Verified, ", ")
			if _, err := fmt.Fprintf(w, "  clean since %s after claim %s, verified: %s\n", c.Time.UTC().Format(time.RFC3339), redact.Escape(c.ClaimID), redact.Escape(text)); err != nil {
				return err
			}
		}
		for _, f := range r.Findings {
			kind := "warning"
			if f.Fatal {
				kind = "error"
			}
			if _, err := fmt.Fprintf(w, "  %s %s: %s\n    %s\n", kind, f.Check, f.Problem, f.Remedy); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c checked) fails() bool {
	for _, f := range c.Findings {
		if f.Fatal {
			return true
		}
	}
	return c.Error != ""
}

func failedChecks(results []checked) error {
	failed := 0
	for _, r := range results {
		if r.fails() {
			failed++
		}
	}
	if failed == 0 {
		return nil
	}
	return fault.New(fault.Invalid, reasonChecked, "%d of %d hosts cannot become nodes; follow the remedies above", failed, len(results))
}

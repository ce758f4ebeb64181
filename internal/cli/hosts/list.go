package hosts

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/redact"
)

// listCommand returns the "hosts list" command, for [Command].
func listCommand(e term.Env) *cobra.Command {
	var selector string
	var all bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the hosts of the inventory",
		Example: "  slipway hosts list\n  slipway hosts list -A --selector rack=a -o json",
		Args:    cobra.NoArgs,
	}
	connection := management.AddFlags(cmd.Flags())
	cmd.Flags().StringVarP(&selector, "selector", "l", "", "labels of the hosts to list")
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "list the hosts of all namespaces")
	format := term.AddOutputFlag(cmd.Flags())
	cmd.RunE = connection.RunE(e, func(ctx context.Context, c *management.Connection, _ []string) error {
		parsed, err := parseSelector(selector)
		if err != nil {
			return err
		}
		options := []client.ListOption{client.MatchingLabelsSelector{Selector: parsed}}
		if !all {
			options = append(options, client.InNamespace(c.Namespace))
		}
		found := &infrav1.SSHHostList{}
		if err := c.Client.List(ctx, found, options...); err != nil {
			return err
		}
		rows := rowsOf(found.Items)
		return format.Print(e.Out, rows, func(w io.Writer) error { return printHosts(w, e.Now(), rows, none(c.Namespace, selector, all)) })
	})
	return cmd
}

// row is a host in the structured output of "hosts list". Scripts depend on the field names.
type row struct {
	Namespace    string     `json:"namespace"`
	Name         string     `json:"name"`
	Address      string     `json:"address"`
	State        string     `json:"state"`
	StateSince   *time.Time `json:"stateSince,omitempty"`
	Machine      string     `json:"machine,omitempty"`
	OSImage      string     `json:"osImage,omitempty"`
	Architecture string     `json:"architecture,omitempty"`
	CPUs         int32      `json:"cpus,omitempty"`
	MemoryMiB    int64      `json:"memoryMiB,omitempty"`
	Reason       string     `json:"reason,omitempty"`
	Message      string     `json:"message,omitempty"`
}

func rowsOf(hosts []infrav1.SSHHost) []row {
	out := []row{}
	for i := range hosts {
		out = append(out, rowOf(&hosts[i]))
	}
	slices.SortFunc(out, func(a, b row) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return out
}

// rowOf returns the row of a host. The reason and the message come from the condition that prevents its use. A host
// that serves a machine without a problem has none.
func rowOf(h *infrav1.SSHHost) row {
	facts := h.Status.Facts
	r := row{
		Namespace: h.Namespace, Name: h.Name, Address: h.Spec.Address, State: cmp.Or(string(h.Status.State), "Unknown"), Machine: machineOf(h),
		OSImage: facts.OSImage, Architecture: facts.Architecture, CPUs: facts.CPUs, MemoryMiB: facts.MemoryMiB,
	}
	if h.Status.StateSince != nil {
		r.StateSince = &h.Status.StateSince.Time
	}
	conditions := condition.Set(h.Status.Conditions)
	isServing := r.Machine != "" && h.Status.State != infrav1.SSHHostQuarantined && h.Status.State != infrav1.SSHHostUnreachable
	switch available, installable := conditions.Get(infrav1.AvailableCondition), conditions.Get(infrav1.BundleInstallableCondition); {
	case isServing:
	case available != nil && available.Status != metav1.ConditionTrue:
		r.Reason, r.Message = available.Reason, available.Message
	case installable != nil && installable.Status == metav1.ConditionFalse: // only some machines can claim the host
		r.Reason, r.Message = installable.Reason, installable.Message
	}
	return r
}

// none returns the text about an empty list.
func none(namespace, selector string, all bool) string {
	text := "There are no hosts"
	if selector != "" {
		text += " with the labels " + selector
	}
	if all {
		return text + "; \"slipway hosts add ADDRESS\" adds one."
	}
	return fmt.Sprintf("%s in namespace %s; use -A to list all namespaces, or add one with \"slipway hosts add ADDRESS\".", text, namespace)
}

// printHosts prints the rows as a table, followed by the reasons why hosts cannot be used. none is printed for an empty
// list.
func printHosts(out io.Writer, now time.Time, rows []row, none string) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(out, none)
		return err
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "NAMESPACE\tNAME\tADDRESS\tSTATE\tSINCE\tMACHINE\tCPUS\tMEMORY\tSYSTEM")
	for _, r := range rows {
		since := "-"
		if r.StateSince != nil {
			since = duration.HumanDuration(now.Sub(*r.StateSince))
		}
		cpus, memory := "-", "-" // a host that was never reached has no facts
		if r.CPUs > 0 {
			cpus, memory = strconv.Itoa(int(r.CPUs)), fmt.Sprintf("%d MiB", r.MemoryMiB)
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Namespace, r.Name, r.Address, r.State, since, cmp.Or(r.Machine, "-"), cpus, memory, cmp.Or(redact.Escape(r.OSImage), "-"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Message != "" {
			if _, err := fmt.Fprintf(out, "\n%s/%s: %s\n", r.Namespace, r.Name, redact.Escape(r.Message)); err != nil {
				return err
			}
		}
	}
	return nil
}

package plan

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/heap"
	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/internal/rootcause"
	"github.com/slipwayhq/slipway/internal/ui"
)

// maxUISources is the maximum number of management clusters of one page.
const maxUISources = 16

// uiFlags are the flags of the ui command. access creates the source of plans for each management cluster (access.go).
type uiFlags struct {
	listen      string
	kubeconfigs []string
	contexts    []string
	dataDir     string
	namespace   string
	access      func(term.Env, *management.Flags, *management.Connection, bool) *managerAccess
}

// UICommand returns the ui command, for package cli.
func UICommand(e term.Env) *cobra.Command {
	f := &uiFlags{}
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show clusters and the causes of problems in the browser",
		Long: `Serve a read-only page about the clusters of one or more management clusters on this host, until the
command is interrupted. The page shows which clusters have a problem, why, since when, and what to do.

Open the printed address. It contains a token, which is valid until the command ends. The page only
listens on a loopback address and has the permissions of the kubeconfig. It never writes to a
management cluster and never reads Secrets or ConfigMaps. Every management cluster of Cluster API
works, also without a Slipway manager.`,
		Example: `  slipway ui
  slipway ui --kubeconfig prod.kubeconfig --kubeconfig dev.kubeconfig
  slipway ui --kubeconfig-context eu --kubeconfig-context us --listen 127.0.0.1:7180`,
		Args: cobra.NoArgs,
	}
	f.add(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), e) }
	return cmd
}

func (f *uiFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.listen, "listen", "127.0.0.1:0", "loopback address and port of the page; port 0 selects a free one")
	set.StringArrayVar(&f.kubeconfigs, management.KubeconfigFlag, nil, management.KubeconfigUsage+"; may be repeated")
	set.StringArrayVar(&f.contexts, "kubeconfig-context", nil, "context to use in the kubeconfig (default: its current context); may be repeated")
	set.StringVarP(&f.namespace, "namespace", "n", "", "show only this namespace (default: all namespaces)")
	term.AddDataDirFlag(set, &f.dataDir)
	f.access = addAccessFlags(set)
}

// selections returns the flags that select each management cluster.
func (f *uiFlags) selections() ([]*management.Flags, error) {
	n := max(len(f.kubeconfigs), len(f.contexts), 1)
	switch {
	case len(f.kubeconfigs) > 1 && len(f.contexts) > 0 && len(f.contexts) != len(f.kubeconfigs):
		return nil, fault.New(fault.Invalid, "Usage", "%d times --kubeconfig and %d times --kubeconfig-context: give each kubeconfig one context, or none", len(f.kubeconfigs), len(f.contexts))
	case n > maxUISources:
		return nil, fault.New(fault.Invalid, "Usage", "%d management clusters: at most %d are shown on one page", n, maxUISources)
	}
	out := make([]*management.Flags, n)
	for i := range out {
		out[i] = &management.Flags{DataDir: f.dataDir, Namespace: f.namespace}
		switch {
		case len(f.kubeconfigs) == 1:
			out[i].Kubeconfig = f.kubeconfigs[0]
		case i < len(f.kubeconfigs):
			out[i].Kubeconfig = f.kubeconfigs[i]
		}
		if i < len(f.contexts) {
			out[i].Context = f.contexts[i]
		}
	}
	return out, nil
}

func (f *uiFlags) run(ctx context.Context, e term.Env) error {
	heap.Collect(heap.Manager()) // the process holds the objects of its management clusters, and is idle most of the time
	if err := ui.CheckListenAddress(f.listen); err != nil {
		return err
	}
	sources, err := f.sources(e)
	if err != nil {
		return err
	}
	server, err := ui.NewServer(sources, e.Now)
	if err != nil {
		return err
	}
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", f.listen)
	if err != nil {
		return fault.New(fault.Invalid, "AddressInUse", "%s cannot be used for the page: %v; select another port with --listen", f.listen, err).From(err)
	}
	defer l.Close() //nolint:errcheck // closed by the server, too
	guard, err := ui.NewGuard(l.Addr())
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(e.Out, "%s\n", guard.URL()); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(e.Err, "Open this address in a browser. It is valid until this command ends; stop it with Ctrl-C.\n")
	return server.Serve(ctx, l, guard)
}

// sources connects to the management clusters. No request is sent before the server runs, so that an unreachable
// management cluster is reported on the page and does not hide the others.
func (f *uiFlags) sources(e term.Env) ([]*ui.Source, error) {
	selections, err := f.selections()
	if err != nil {
		return nil, err
	}
	var out []*ui.Source
	for _, selection := range selections {
		c, err := selection.Connect(e)
		if err != nil {
			return nil, err
		}
		access := f.access(e, selection, c, len(selections) == 1)
		source, err := ui.NewSource(ui.SourceOptions{
			Title: sourceTitle(selection, c), Config: c.Config, Namespace: f.namespace, Flags: c.RepeatFlags, Now: e.Now,
			Plans: uiPlans(access), Metrics: access.Metrics, Process: c.ProcessProblem,
		})
		if err != nil {
			return nil, err
		}
		out = append(out, source)
	}
	return out, nil
}

// uiPlans returns the plans of a manager for the page.
func uiPlans(access *managerAccess) ui.PlanReader {
	return func(ctx context.Context, of rootcause.Ref) ([]ui.Plan, bool, error) {
		records, causes, found, err := access.Plans(ctx, of)
		if err != nil || !found {
			return nil, found, err
		}
		out := make([]ui.Plan, len(records))
		for i, r := range records {
			out[i] = pagePlan(r, causes[i])
		}
		return out, true, nil
	}
}

// pagePlan converts a plan for the page. cause is the same plan, converted by [causePlans], with the waits in the same
// order.
func pagePlan(r manager.PlanRecord, cause rootcause.Plan) ui.Plan {
	p := ui.Plan{Controller: r.Controller, Time: r.Time, Actions: r.Actions, Errors: r.Errors, ErrorsSince: cause.ErrorsSince, Recheck: r.Recheck}
	for i, w := range cause.Waits {
		p.Waits = append(p.Waits, ui.PlanWait{Wait: w, Until: waitEnd(r.Waits[i]) + "."})
	}
	return p
}

// sourceTitle returns the name of a management cluster for its tab: the context, the name of the kubeconfig, or the
// host of the API server.
func sourceTitle(f *management.Flags, c *management.Connection) string {
	switch {
	case f.Context != "":
		return f.Context
	case f.Kubeconfig != "":
		name := filepath.Base(f.Kubeconfig)
		return strings.TrimSuffix(strings.TrimSuffix(name, filepath.Ext(name)), ".kubeconfig")
	case c.DataDir != "":
		return "slipway up"
	}
	_, host, ok := strings.Cut(c.Config.Host, "://")
	if !ok {
		host = c.Config.Host
	}
	return host
}

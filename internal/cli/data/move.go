package data

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/clusterctl/move"
	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/heap"
)

// moveOptions holds the flag values. runMove calls check first, and then carryOut, or files for a move to or from a
// directory.
type moveOptions struct {
	from         *management.Flags
	to           management.Flags
	clusters     []string
	fromDir      string
	toDir        string
	dryRun       bool
	rollback     bool
	withData     bool
	data         move.DataOptions
	hideWarnings string
	format       *term.Format
}

// MoveCommand returns the move command of clusterctl, with additional flags such as --cluster, --rollback and
// --with-data. Package cli adds the command.
func MoveCommand(e term.Env) *cobra.Command {
	o := &moveOptions{}
	cmd := &cobra.Command{
		Use:   "move",
		Short: "Move Cluster API objects to another management cluster",
		Long: `Move the Clusters of a namespace and all objects that belong to them to another management cluster.
The nodes and Pods of the workload clusters are not affected.

All checks run before the first change. The objects are paused at the source, created at the target,
read back and compared. Only then are they deleted at the source and resumed at the target. If the
command is interrupted, run the same command again to continue, or run it with --rollback to return
everything to the source.

If "slipway up" runs both management clusters on this host as the same user, the processes of hosted
control planes, the node containers and the networks are transferred and continue to run.

They cannot be transferred to another host. With --with-data, the data of hosted control planes is
transferred through the store of an EtcdSnapshotPolicy that both management clusters can reach. Each
control plane is quiesced, saved and stopped at the source, then started at the target with all
writes that its API acknowledged. Its API is unavailable in the meantime. Nodes in containers are
recreated, and their Pods end.

With --to-directory, the objects are written to files and stay in the management cluster.
--from-directory creates the objects from such files.`,
		Example: `  slipway move --to-kubeconfig target.kubeconfig --dry-run
  slipway move --to-kubeconfig target.kubeconfig -n team-a
  slipway move --to-kubeconfig target.kubeconfig -n team-a --cluster demo
  slipway move --to-kubeconfig target.kubeconfig -n team-a --rollback
  slipway move --to-kubeconfig target.kubeconfig -n team-a --with-data --dry-run`,
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	o.from = management.AddFlags(flags)
	flags.StringVar(&o.to.Kubeconfig, "to-kubeconfig", "", "path to the kubeconfig of the target management cluster")
	flags.StringVar(&o.to.Context, "to-kubeconfig-context", "", "context to use in the kubeconfig of the target (default: its current context)")
	flags.StringSliceVar(&o.clusters, "cluster", nil, "move only these Clusters; objects that they share with other Clusters are copied, or the move is rejected")
	flags.StringVar(&o.fromDir, "from-directory", "", "create the objects from the files in this directory")
	flags.StringVar(&o.toDir, "to-directory", "", "write the objects to files in this directory; the objects stay in the management cluster")
	flags.BoolVar(&o.dryRun, "dry-run", false, "print the planned steps and change nothing")
	flags.BoolVar(&o.rollback, "rollback", false, "roll back an interrupted move")
	flags.BoolVar(&o.withData, "with-data", false, "transfer the data of hosted control planes to the host of the target, and recreate nodes in containers there")
	flags.StringVar(&o.data.Policy, "policy", "", "with --with-data: EtcdSnapshotPolicy whose store is used (default: the only policy for the cluster)")
	flags.StringVar(&o.data.IdentitySecret, "identity-secret", "", "with --with-data: Secret at the target with the age identity that decrypts the snapshots")
	flags.StringVar(&o.hideWarnings, "hide-api-warnings", "default", "API server warnings to hide: default (only warnings about finalizer names), all or none")
	o.format = term.AddOutputFlag(flags)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return runMove(cmd.Context(), e, o) }
	return cmd
}

func (o *moveOptions) check() error {
	usage := func(format string, args ...any) error { return fault.New(fault.Invalid, "Usage", format, args...) }
	targets := 0
	for _, set := range []bool{o.to.Kubeconfig != "" || o.to.Context != "", o.fromDir != "", o.toDir != ""} {
		if set {
			targets++
		}
	}
	switch {
	case targets == 0:
		return usage("set the target of the move: --to-kubeconfig FILE, --to-directory DIR, or --from-directory DIR")
	case targets > 1:
		return usage("use only one of --to-kubeconfig, --to-directory and --from-directory; --from-directory creates in the cluster of --kubeconfig")
	case o.rollback && (o.fromDir != "" || o.toDir != "" || o.dryRun):
		return usage("--rollback reverts a move to another management cluster, and requires --to-kubeconfig")
	case o.fromDir != "" && len(o.clusters) > 0:
		return usage("--cluster cannot be used with --from-directory: everything in the directory is created")
	case o.withData && (o.fromDir != "" || o.toDir != ""):
		return usage("--with-data takes data to another management cluster, and goes only with --to-kubeconfig")
	case !o.withData && (o.data != move.DataOptions{}):
		return usage("--policy and --identity-secret go only with --with-data")
	case o.hideWarnings != "default" && o.hideWarnings != "all" && o.hideWarnings != "none":
		return usage("--hide-api-warnings is default, all or none, not %q", o.hideWarnings)
	}
	return nil
}

// runMove checks the flags, connects to the source and the target, and calls package move.
func runMove(ctx context.Context, e term.Env, o *moveOptions) error {
	heap.LowMemory() // the process holds the objects of both management clusters
	if err := o.check(); err != nil {
		return err
	}
	source, err := o.from.Connect(e)
	if err != nil {
		return err
	}
	from, err := management.WithWarnings(source.Config, o.warnings(e.Err))
	if err != nil {
		return err
	}
	options := move.Options{
		Scope:    graph.Scope{Namespace: source.Namespace, Clusters: o.clusters},
		WithData: o.withData, Data: o.data, Now: e.Now,
		Report: func(line string) { _, _ = fmt.Fprintln(e.Err, line) },
	}
	if o.fromDir != "" || o.toDir != "" {
		return source.Explain(o.files(ctx, e, from, options))
	}
	target, err := o.target(e)
	if err != nil {
		return err
	}
	to, err := management.WithWarnings(target.Config, o.warnings(e.Err))
	if err != nil {
		return err
	}
	if err := ping(ctx, to); fault.KindOf(err) == fault.Unreachable {
		return target.Explain(err) // the error identifies the unreachable cluster
	}
	if !o.withData {
		options.Host, options.HostProblem, err = move.FindHost(ctx, move.HostAccess{Client: from, Config: source.Config}, move.HostAccess{Client: to, Config: target.Config})
		if err != nil {
			return source.Explain(err)
		}
	}
	err = o.carryOut(ctx, e, move.New(from, to, options))
	if fault.KindOf(err) == fault.Unreachable && fault.KindOf(ping(ctx, to)) == fault.Unreachable {
		return target.Explain(err)
	}
	return source.Explain(err)
}

// ping reads an object that every management cluster has.
func ping(ctx context.Context, c client.Client) error {
	return c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &corev1.Namespace{})
}

// target connects to the target management cluster. Without a separate kubeconfig, it is another context of the
// source's kubeconfig.
func (o *moveOptions) target(e term.Env) (*management.Connection, error) {
	if o.to.Kubeconfig == "" {
		o.to.Kubeconfig = o.from.Kubeconfig
		o.to.DataDir = o.from.DataDir
	}
	return o.to.Connect(e)
}

// carryOut plans, executes or rolls back the move between two management clusters, and prints the result.
func (o *moveOptions) carryOut(ctx context.Context, e term.Env, m *move.Move) error {
	if o.dryRun {
		plan, err := m.Plan(ctx)
		if err != nil {
			return err
		}
		return o.show(e, plan)
	}
	act := m.Run
	if o.rollback {
		act = m.Rollback
	}
	result, err := act(ctx)
	if err != nil {
		return err
	}
	return o.format.Print(e.Out, result, func(w io.Writer) error {
		text := fmt.Sprintf("Moved %d objects, copied %d.", result.Moved, result.Copied)
		if result.Reverted {
			text = "Everything is back at the source."
		}
		_, err := fmt.Fprintln(w, text)
		return err
	})
}

func (o *moveOptions) show(e term.Env, plan move.Plan) error {
	steps := struct {
		Steps []string `json:"steps"`
	}{plan.Steps()}
	return o.format.Print(e.Out, steps, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, strings.Join(steps.Steps, "\n"))
		return err
	})
}

// files moves objects to or from a directory.
func (o *moveOptions) files(ctx context.Context, e term.Env, c client.Client, options move.Options) error {
	var err error
	var done move.DirectoryResult
	switch {
	case o.toDir != "" && o.dryRun:
		plan, err := move.PlanExport(ctx, c, options)
		if err != nil {
			return err
		}
		return o.show(e, plan)
	case o.toDir != "":
		done, err = move.ToDirectory(ctx, c, o.toDir, options)
	default:
		done, err = move.FromDirectory(ctx, c, o.fromDir, move.RestoreOptions{Report: options.Report, DryRun: o.dryRun})
	}
	if err != nil {
		return err
	}
	if o.fromDir != "" && !o.dryRun && done.Created > 0 {
		_, _ = fmt.Fprintln(e.Err, "The objects are not paused in the management cluster that they came from: until one of the two managers is stopped, both manage the same resources.")
	}
	return o.format.Print(e.Out, done, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, done)
		return err
	})
}

// warnings returns a handler that prints warnings unless they are hidden.
func (o *moveOptions) warnings(w io.Writer) rest.WarningHandlerWithContext {
	if o.hideWarnings == "all" {
		return rest.NoWarnings{}
	}
	return warnings{to: w, all: o.hideWarnings == "none"}
}

type warnings struct {
	to  io.Writer
	all bool
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (h warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	if h.all || !strings.HasPrefix(text, "metadata.finalizers:") {
		_, _ = fmt.Fprintln(h.to, "Warning:", text)
	}
}

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/hidden"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/clusterctl/template"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/describe"
	"github.com/slipwayhq/slipway/internal/operate/progress"
	"github.com/slipwayhq/slipway/internal/operate/upgrade"
)

// UpgradeClusterCommand returns the upgrade cluster command, for package cli.
func UpgradeClusterCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster CLUSTER --to VERSION",
		Short: "Upgrade a cluster of a ClusterClass to another Kubernetes version",
		Long: `Upgrade a cluster of a ClusterClass to another Kubernetes version. The command shows the steps and
the nodes that are replaced, prompts for confirmation, and waits until the control plane and all
nodes have the version. Interrupting the wait does not stop the upgrade. If the nodes are containers
on this host and a required node image is missing, the upgrade does not start.`,
		Example: `  slipway upgrade cluster demo --to v1.37.2
  slipway upgrade cluster demo --to v1.37.2 --dry-run -o json`,
		Args: term.ExactlyOneArgument("CLUSTER"),
	}
	f := &upgradeClusterFlags{connection: management.AddFlags(cmd.Flags())}
	cmd.ValidArgsFunction = f.connection.CompleteCluster(e)
	cmd.Flags().StringVar(&f.to, "to", "", "Kubernetes version, for example v1.37.2")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print the steps and change nothing")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "skip the confirmation prompt")
	f.timeout = term.AddOptionalWaitTimeout(cmd.Flags(), 30*time.Minute, "how long to wait")
	f.format = term.AddOutputFlag(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.check(); err != nil {
			return err
		}
		c, err := f.connection.Connect(e)
		if err != nil {
			return err
		}
		return c.Explain(f.run(cmd.Context(), e, c, args[0]))
	}
	return cmd
}

// upgradeClusterFlags holds the flag values. The command calls check, then run.
type upgradeClusterFlags struct {
	connection *management.Flags
	to         string
	dryRun     bool
	yes        bool
	timeout    *time.Duration
	format     *term.Format
}

func (f *upgradeClusterFlags) check() error {
	if f.to != "" && !strings.HasPrefix(f.to, "v") {
		f.to = "v" + f.to
	}
	return nil
}

// run plans the upgrade, prints the steps, writes the version after confirmation, and waits.
func (f *upgradeClusterFlags) run(ctx context.Context, e term.Env, c *management.Connection, name string) error {
	key := c.Key(name)
	if _, err := c.Cluster(ctx, name); err != nil {
		return err
	}
	found, err := describe.Read(ctx, c.Client, key, describe.Options{})
	if err != nil {
		return err
	}
	used, err := classOf(ctx, c, found)
	if err != nil {
		return err
	}
	if f.to == "" {
		now := found.Cluster.Spec.Topology.Version
		return upgradeClusterUsage(fmt.Sprintf("--to VERSION is missing; cluster %s has %s%s", name, now, hidden.NewerVersions(datadir.Dir(c.DataDir), used, now)))
	}
	plan, err := upgrade.NewPlan(found, used.ClusterClass, f.to)
	if err != nil {
		return err
	}
	version, images := missingVersionMessage(datadir.Dir(c.DataDir), used, plan), missingImages(ctx, c, found, plan)
	if f.dryRun {
		if version != "" {
			_, _ = fmt.Fprintln(e.Err, "Warning: "+version)
		}
		if images != "" {
			_, _ = fmt.Fprintln(e.Err, "Warning: "+missingImagesMessage(images))
		}
		return f.format.Print(e.Out, plan, func(w io.Writer) error { return printUpgradePlan(w, plan) })
	}
	if err := printUpgradePlan(e.Err, plan); err != nil {
		return err
	}
	if found.Cluster.Spec.Topology.Version != f.to {
		if version != "" {
			return fault.New(fault.Invalid, "VersionMissing", "%s", version)
		}
		if images != "" {
			return fault.New(fault.Invalid, "NodeImageMissing", "%s", missingImagesMessage(images))
		}
		c.WarnIgnoredKubeconfig(e)
		if !f.yes {
			if err := e.Confirm("upgrade"); err != nil {
				return err
			}
		}
		if err := upgrade.Apply(ctx, c.Client, found.Cluster, f.to); err != nil {
			return err
		}
	}
	if *f.timeout == 0 {
		return nil
	}
	return f.wait(ctx, e, c, plan)
}

// missingVersionMessage returns an error message if this host lacks a required version of the control plane, and an
// empty string otherwise.
func missingVersionMessage(dir datadir.Dir, used template.Class, plan upgrade.Plan) string {
	for _, step := range plan.Steps {
		if !step.ControlPlane {
			continue
		}
		if lacks := hidden.UnsupportedVersion(dir, used, step.Version); lacks != "" {
			return fmt.Sprintf("the control plane of cluster %q cannot be upgraded to %s: %s", plan.Cluster, step.Version, lacks)
		}
	}
	return ""
}

// classOf returns the class of the Cluster, or an empty class if it has none.
func classOf(ctx context.Context, c *management.Connection, s describe.Snapshot) (template.Class, error) {
	if topology := s.Cluster.Spec.Topology; topology.IsDefined() {
		return template.FindClass(ctx, c.Client, s.Cluster.Namespace, topology.ClassRef)
	}
	return template.Class{ClusterClass: &clusterv1.ClusterClass{}}, nil
}

func printUpgradePlan(w io.Writer, plan upgrade.Plan) error {
	_, err := fmt.Fprintln(w, strings.Join(plan.Lines(), "\n"))
	return err
}

func (f *upgradeClusterFlags) wait(ctx context.Context, e term.Env, c *management.Connection, plan upgrade.Plan) error {
	ctx, cancel := context.WithTimeout(ctx, *f.timeout)
	defer cancel()
	start := e.Now()
	err := progress.WaitForCreation(ctx, c.Client, client.ObjectKey{Namespace: c.Namespace, Name: plan.Cluster}, term.Reporter(e))
	if known := fault.As(err); errors.Is(err, context.Canceled) || known != nil && known.Reason == progress.ReasonTimeout {
		_, _ = fmt.Fprintf(e.Err, "The upgrade of cluster %q continues; \"slipway describe cluster %s -n %s%s\" shows how far it is.\n", plan.Cluster, plan.Cluster, c.Namespace, c.RepeatFlags)
	}
	if err != nil {
		return err
	}
	return f.format.Print(e.Out, plan, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "Cluster %q has Kubernetes %s after %s.\n", plan.Cluster, plan.To, progress.Elapsed(e.Now().Sub(start)))
		return err
	})
}

func upgradeClusterUsage(message string) error {
	return fault.New(fault.Invalid, "Usage", "%s", message)
}

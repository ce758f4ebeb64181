package cluster

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/describe"
)

// DescribeClusterCommand returns the describe cluster command, for package cli.
func DescribeClusterCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster CLUSTER",
		Short: "Show the objects of a cluster and their status as a tree",
		Long: `Show the objects of a cluster and their status as a tree. If the cluster has a problem, the first line
names its root cause. Below each object, the tree shows every unhealthy condition with a message,
unless another row shows the same message.

With -o json or -o yaml, the output is the tree: each object with its conditions and its children. The
root cause is not part of it; "slipway explain cluster/CLUSTER -o json" prints it.`,
		Example: `  slipway describe cluster demo
  slipway describe cluster demo --show-conditions=all
  slipway describe cluster demo --show-conditions=md,Machine/demo-workers-x2c9f
  slipway describe cluster demo --watch
  slipway describe cluster demo -o json`,
		Args: term.ExactlyOneArgument("CLUSTER"),
	}
	connection := management.AddFlags(cmd.Flags())
	cmd.ValidArgsFunction = connection.CompleteCluster(e)
	chosen := addDescribeFlags(cmd.Flags())
	watch := cmd.Flags().BoolP("watch", "w", false, "show the tree again after each change, until the command is interrupted or the cluster is gone")
	format := term.AddOutputFlag(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *watch && format.String() != "" {
			return fault.New(fault.Invalid, "Usage", "--watch cannot be used with --output")
		}
		c, err := connection.Connect(e)
		if err != nil {
			return err
		}
		key := c.Key(args[0])
		if err := chosen.expand(c); err != nil {
			return c.Explain(err)
		}
		if *watch {
			return c.Explain(chosen.watch(cmd.Context(), e, c, key, cmd.Flags().Changed("color")))
		}
		root, snapshot, err := chosen.read(cmd.Context(), c.Client, key)
		if err != nil {
			return c.Explain(err)
		}
		if err := chosen.printRemarks(cmd.Context(), e, c, root, snapshot); err != nil {
			return err
		}
		return format.Print(e.Out, root, func(w io.Writer) error {
			cause := (&causeReader{env: e, connection: c, key: key}).read(cmd.Context())
			if err := cause.printRemarks(e.Err); err != nil {
				return err
			}
			if _, err := io.WriteString(w, cause.text(e.Now())); err != nil {
				return err
			}
			_, err := io.WriteString(term.Unescaped(w), describe.Render(root, chosen.style(e, cmd.Flags().Changed("color"))))
			return err
		})
	}
	return cmd
}

// describeClusterFlags are the flags that clusterctl has as well; scripts depend on their names and defaults. --watch
// uses them again for each output (describe_cluster_watch.go).
type describeClusterFlags struct {
	describe.Options
	color   bool
	v1beta2 bool
	// ungrouped is the deprecated flag that --grouping replaces.
	ungrouped *bool
}

func addDescribeFlags(set *pflag.FlagSet) *describeClusterFlags {
	f := &describeClusterFlags{}
	set.StringSliceVar(&f.ShowConditions, "show-conditions", nil, "objects whose conditions are shown, as KIND or KIND/NAME separated by commas; plural and short names are accepted, and \"all\" selects every object")
	set.BoolVar(&f.ShowMachineSets, "show-machinesets", false, "show all MachineSets between MachineDeployments and Machines, not only MachineSets with an issue")
	set.BoolVar(&f.ShowResourceSets, "show-resourcesets", false, "show all ClusterResourceSets that apply to the cluster, not only ClusterResourceSets with an issue")
	set.BoolVar(&f.ShowTemplates, "show-templates", false, "show the templates that Machines are created from")
	set.BoolVar(&f.Echo, "echo", false, "show the infrastructure and bootstrap objects of Machines even if they are ready or repeat the status of the Machine")
	set.BoolVar(&f.Grouping, "grouping", true, "show Machines in the same state as one row")
	set.BoolVarP(&f.color, "color", "c", false, "color the status of conditions (default: on a terminal, unless NO_COLOR is set)")
	set.BoolVar(&f.v1beta2, "v1beta2", true, "show the conditions of API version v1beta2; false: the deprecated conditions of v1beta1")
	set.BoolVar(&f.Echo, "disable-no-echo", false, "")
	_ = set.MarkDeprecated("disable-no-echo", "use --echo")
	f.ungrouped = set.Bool("disable-grouping", false, "")
	_ = set.MarkDeprecated("disable-grouping", "use --grouping=false")
	return f
}

// expand replaces plural and short names, such as md, with the kinds. Unknown names remain unchanged.
func (f *describeClusterFlags) expand(c *management.Connection) error {
	if !slices.ContainsFunc(f.ShowConditions, func(want string) bool { return !strings.EqualFold(want, "all") }) {
		return nil
	}
	kinds, err := management.NewKinds(c.Config)
	if err != nil {
		return err
	}
	for i, want := range f.ShowConditions {
		kind, name, one := strings.Cut(want, "/")
		if mapping, err := kinds.Find(kind); err == nil && mapping.GroupVersionKind.Kind != "" {
			f.ShowConditions[i] = mapping.GroupVersionKind.Kind
			if one {
				f.ShowConditions[i] += "/" + name
			}
		}
	}
	return nil
}

// read returns the tree and the snapshot it was built from. With --watch, it is called after every change.
func (f *describeClusterFlags) read(ctx context.Context, c describe.Reader, key client.ObjectKey) (root *describe.Object, snapshot describe.Snapshot, err error) {
	f.Deprecated = !f.v1beta2
	f.Grouping = f.Grouping && !*f.ungrouped
	snapshot, err = describe.Read(ctx, c, key, f.Options)
	if apierrors.IsNotFound(err) {
		_, err = describe.GetCluster(ctx, c, key) // the error lists the existing clusters
	}
	if err != nil {
		return nil, snapshot, err
	}
	return describe.Build(snapshot, f.Options), snapshot, nil
}

// printRemarks reports requested objects that are not in the tree, and that nothing will change if no manager is
// running. The command calls it before it prints the tree, without --watch.
func (f *describeClusterFlags) printRemarks(ctx context.Context, e term.Env, c *management.Connection, root *describe.Object, snapshot describe.Snapshot) error {
	var lines []string
	if unmatched := f.Unmatched(root); len(unmatched) > 0 {
		everything := describe.Options{Echo: true, ShowMachineSets: true, ShowResourceSets: true, ShowTemplates: f.ShowTemplates, Deprecated: f.Deprecated}
		lines = append(lines, fmt.Sprintf("The tree has no object %s, as requested by --show-conditions; it has %s.",
			strings.Join(unmatched, ", "), strings.Join(describe.Build(snapshot, everything).Kinds(), ", ")))
	}
	if away := c.ManagerProblem(ctx, client.ObjectKey{Namespace: root.Namespace, Name: root.Name}); away != "" {
		lines = append(lines, away)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(e.Err, line); err != nil {
			return err
		}
	}
	return nil
}

// style returns the style for the terminal, also for --watch. asked is true if --color was set.
func (f *describeClusterFlags) style(e term.Env, asked bool) describe.Style {
	s := term.DetectScreen(e, e.Out)
	style := describe.Style{Now: e.Now(), Unicode: s.Unicode, Color: s.Color, Width: s.Width, Deprecated: f.Deprecated}
	if columns, err := strconv.Atoi(e.Getenv("COLUMNS")); err == nil && s.Live {
		style.Width = columns
	}
	if asked {
		style.Color = f.color
	}
	return style
}

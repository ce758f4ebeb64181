package cluster

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/clusterctl/template"
	"github.com/slipwayhq/slipway/internal/fault"
)

// GenerateClusterCommand returns the generate cluster command of clusterctl, for package cli.
func GenerateClusterCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster NAME",
		Short: "Generate the manifest of a cluster from a template",
		Long: `Generate the manifest of a cluster from a template of an infrastructure provider. Without
--infrastructure, the command uses the provider that is installed in the management cluster, or with
"slipway up" the provider of Slipway. Apply the manifest with kubectl. "slipway create cluster" does
both at once, and waits until the nodes are ready.`,
		Example: `  slipway generate cluster demo --kubernetes-version v1.36.3 --worker-machine-count 2 | slipway kubectl apply -f -
  slipway generate cluster demo --infrastructure aws:v2.9.1 --flavor eks --list-variables
  slipway generate cluster demo --from https://github.com/OWNER/REPOSITORY/blob/main/cluster-template.yaml`,
	}
	o := &generateOptions{management: management.AddClusterScopedFlags(cmd.Flags()), source: term.AddConfigFlags(cmd.Flags())}
	o.add(cmd.Flags())
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if o.list && len(args) == 0 {
			return nil
		}
		return term.ExactlyOneArgument("NAME")(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(cmd.Flags()); err != nil {
			return err
		}
		if len(args) == 1 {
			o.name = args[0]
		}
		return o.run(cmd.Context(), e)
	}
	return cmd
}

// contractCount is the name of --control-plane-machine-count in the contract of clusterctl.
const contractCount = "controlplane-machine-count"

// generateOptions holds the flag values. The flags are clusterctl's, and scripts depend on their names and defaults.
// run is in generate_cluster_run.go.
type generateOptions struct {
	management *management.Flags
	source     *term.ConfigFlags

	name, namespace, version        string
	controlPlane, workers           int64
	controlPlaneGiven, workersGiven bool
	infrastructure, flavor, from    string
	configMap, mapNamespace, mapKey string
	list                            bool
	write                           string
}

func (o *generateOptions) add(flags *pflag.FlagSet) {
	flags.StringVarP(&o.namespace, "target-namespace", "n", "", "namespace of the cluster (default: the namespace of the context)")
	flags.StringVar(&o.version, "kubernetes-version", "", "Kubernetes version (default: the variable KUBERNETES_VERSION)")
	flags.Int64Var(&o.controlPlane, "control-plane-machine-count", 1, "number of control plane machines")
	flags.Int64Var(&o.controlPlane, contractCount, 1, "name of --control-plane-machine-count in the clusterctl contract")
	_ = flags.MarkHidden(contractCount) // the flag was just defined
	flags.Int64Var(&o.workers, "worker-machine-count", 0, "number of worker machines")
	flags.StringVarP(&o.infrastructure, "infrastructure", "i", "", "infrastructure provider of the template, as NAME or NAME:VERSION (default: the installed provider)")
	flags.StringVarP(&o.flavor, "flavor", "f", "", "flavor of the template (default: the template without a flavor)")
	flags.StringVar(&o.from, "from", "", "path or https URL of the template; - reads standard input")
	flags.StringVar(&o.configMap, "from-config-map", "", "ConfigMap in the management cluster that contains the template")
	flags.StringVar(&o.mapNamespace, "from-config-map-namespace", "", "namespace of the ConfigMap (default: the namespace of the context)")
	flags.StringVar(&o.mapKey, "from-config-map-key", "", "key of the ConfigMap (default: "+template.DefaultKey+")")
	flags.BoolVar(&o.list, "list-variables", false, "list the variables of the template and exit")
	flags.StringVar(&o.write, "write-to", "", "file to write to instead of standard output")
}

// check rejects conflicting flags, and records whether the numbers of machines were set.
func (o *generateOptions) check(flags *pflag.FlagSet) error {
	o.controlPlaneGiven, o.workersGiven = flags.Changed("control-plane-machine-count") || flags.Changed(contractCount), flags.Changed("worker-machine-count")
	kinds := 0
	for _, given := range []bool{o.infrastructure != "" || o.flavor != "", o.from != "", o.configMap != ""} {
		if given {
			kinds++
		}
	}
	if kinds > 1 {
		return fault.New(fault.Invalid, "Usage", "the template is in one place: use only one of --infrastructure with --flavor, --from and --from-config-map")
	}
	if o.configMap == "" && (o.mapNamespace != "" || flags.Changed("from-config-map-key")) {
		return fault.New(fault.Invalid, "Usage", "--from-config-map-namespace and --from-config-map-key need --from-config-map")
	}
	return nil
}

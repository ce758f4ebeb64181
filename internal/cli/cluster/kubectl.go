package cluster

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/cli"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/plugin"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
)

// KubectlCommand returns the kubectl command, for package cli.
func KubectlCommand(e term.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [ARGUMENTS]",
		Short: "Run kubectl against the management cluster",
		Long: `Run the kubectl that is built into this binary, with all its commands, flags and plugins.

The command connects to the cluster of --kubeconfig. Without this flag, it connects to the
management cluster of the data directory (--data-dir, by default $XDG_DATA_HOME/slipway or
~/.local/share/slipway) if this cluster has been started before. Otherwise it connects to the
cluster of $KUBECONFIG or ~/.kube/config.`,
		Example: `  slipway kubectl get clusters,machinepools,machines
  slipway kubectl apply -f examples/quickstart.yaml
  slipway get kubeconfig demo --user anna --output-file demo.kubeconfig
  slipway kubectl --kubeconfig demo.kubeconfig get nodes`,
		DisableFlagParsing: true,
		ValidArgsFunction: func(_ *cobra.Command, args []string, last string) ([]string, cobra.ShellCompDirective) {
			return completeKubectl(e, args, last)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			a, err := parseKubectlArguments(args)
			if err != nil {
				return err
			}
			if err := checkKubectlRollout(a.rest); err != nil {
				return err
			}
			path, err := kubectlKubeconfig(e, a)
			if err != nil {
				return err
			}
			return runKubectl(e, a.rest, path)
		},
	}
}

// kubectlKubeconfig returns the path of the default kubeconfig; empty: the default locations of kubectl. If the command
// needs the management cluster and it is not running, the error explains how to start it. The command and its shell
// completion call it (kubectl_complete.go).
func kubectlKubeconfig(e term.Env, a kubectlArguments) (string, error) {
	if a.explicit {
		return "", nil
	}
	flags := management.Flags{DataDir: a.dataDir}
	found, err := flags.Find(e)
	switch {
	case err != nil && a.offline:
		return "", nil
	case err != nil:
		return "", err
	case found.DataDir == "" || a.offline:
		return found.Path, nil
	}
	state, err := datadir.Inspect(datadir.Dir(found.DataDir))
	if err == nil && !state.Held {
		return "", fault.New(fault.Unreachable, management.ReasonNotRunning,
			"the management cluster in %s is not running; \"%s\" starts it", found.DataDir, found.UpCommand)
	}
	return found.Path, nil // if the state cannot be read, requests to the cluster show the problem
}

// runKubectl runs kubectl. If kubectl fails, the process exits with the exit code of kubectl.
func runKubectl(e term.Env, args []string, path string) error {
	if err := setKubeconfigVariable(path); err != nil {
		return err
	}
	// Signals are not handled by this program: some kubectl commands handle them, and others must end with them.
	signal.Reset(os.Interrupt, syscall.SIGTERM)
	streams := genericiooptions.IOStreams{In: e.In, Out: term.Unescaped(e.Out), ErrOut: term.Unescaped(e.Err)}
	if err := cli.RunNoErrOutput(newKubectl(streams, args)); err != nil {
		cmdutil.CheckErr(err)
	}
	return nil
}

// setKubeconfigVariable sets the variable that the loading rules of kubectl, its config command and its plugins read.
// It does nothing if the path is empty.
func setKubeconfigVariable(path string) error {
	if path == "" {
		return nil
	}
	return os.Setenv(clientcmd.RecommendedConfigPathEnvVar, path)
}

// newKubectl returns the command of kubectl with its arguments. The shell completion also creates it.
func newKubectl(streams genericiooptions.IOStreams, args []string) *cobra.Command {
	root := kubectlcmd.NewDefaultKubectlCommandWithArgs(kubectlcmd.KubectlOptions{
		PluginHandler: kubectlcmd.NewDefaultPluginHandler(plugin.ValidPluginFilenamePrefixes),
		Arguments:     append([]string{"kubectl"}, args...),
		ConfigFlags: genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag().
			WithDiscoveryBurst(300).WithDiscoveryQPS(50).WithWarningPrinter(streams),
		IOStreams: streams,
	})
	root.SetArgs(args)
	return root
}

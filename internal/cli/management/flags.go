package management

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Reasons of the faults of this package.
const (
	// ReasonNotRunning means that no management cluster was found; the kind is Unreachable.
	ReasonNotRunning = "ManagementClusterNotRunning"
	// reasonNotReady means that the management cluster or its manager is running but does not respond, or not in time;
	// the kind is Unreachable.
	reasonNotReady = "ManagementClusterNotReady"
	// ReasonKubeconfig means that a kubeconfig cannot be used; the kind is Invalid.
	ReasonKubeconfig = "InvalidKubeconfig"
	// reasonNotInstalled means that Cluster API is not installed in the cluster; the kind is Invalid.
	reasonNotInstalled = "ClusterAPINotInstalled"
)

// Name and usage text of the flag for the kubeconfig. As clusterctl, the program shows another text (package cli).
const (
	KubeconfigFlag  = "kubeconfig"
	KubeconfigUsage = "path to the kubeconfig of the management cluster (default: the kubeconfig of the data directory, else $KUBECONFIG)"
)

// Flags select the management cluster and a namespace. Every command that needs a management cluster adds them.
type Flags struct {
	// Kubeconfig is a path; empty: see [Flags.Find].
	Kubeconfig string
	// Context is a context in the kubeconfig; empty: the current one.
	Context string
	// DataDir is the data directory of `slipway up`; empty: the default.
	DataDir string
	// Namespace is the namespace; empty: the namespace of the context, or else "default".
	Namespace string
}

// AddFlags adds the flags to a command for namespaced objects.
func AddFlags(flags *pflag.FlagSet) *Flags {
	f := AddClusterScopedFlags(flags)
	flags.StringVarP(&f.Namespace, "namespace", "n", "", "namespace of the cluster (default: the namespace of the context)")
	return f
}

// AddClusterScopedFlags adds the flags, except the namespace, to a command.
func AddClusterScopedFlags(flags *pflag.FlagSet) *Flags {
	f := &Flags{}
	flags.StringVar(&f.Kubeconfig, KubeconfigFlag, "", KubeconfigUsage)
	flags.StringVar(&f.Context, "kubeconfig-context", "", "context to use in the kubeconfig (default: its current context)")
	term.AddDataDirFlag(flags, &f.DataDir)
	return f
}

// SelectedKubeconfig is the kubeconfig that the flags select. [Flags.Find] fills it.
type SelectedKubeconfig struct {
	// Path is the path of the kubeconfig; empty: the loading rules of kubectl.
	Path string
	// DataDir is set if the kubeconfig is that of a data directory.
	DataDir string
	// UpCommand starts the management cluster, for printed commands; empty without a data directory.
	UpCommand string
	// Context is the context to use unless the flags contain one; empty: the current one.
	Context string
	// Server is the required API server of the kubeconfig; empty: any.
	Server string
	// Overlooked is true if the kubeconfig of the data directory is used although KUBECONFIG is set to another one.
	Overlooked bool
}

// Find returns the kubeconfig that the flags select. [Flags.Connect] calls it, and commands that need only the path,
// such as kubectl.
func (f *Flags) Find(e term.Env) (SelectedKubeconfig, error) {
	if f.Kubeconfig != "" {
		return ofDataDir(f.Kubeconfig, f.Kubeconfig), nil
	}
	dir, err := e.DataDir(f.DataDir)
	if err != nil {
		return SelectedKubeconfig{}, err
	}
	if e.Program == term.Clusterctl && f.DataDir == "" && kubeconfigVariable(e) != "" {
		if !hasDefaultKubeconfig(e) {
			return SelectedKubeconfig{}, fault.New(fault.Invalid, ReasonKubeconfig, "KUBECONFIG names %s, which does not exist", kubeconfigVariable(e))
		}
		return SelectedKubeconfig{}, nil
	}
	_, err = os.Stat(dir.Kubeconfig())
	if err == nil {
		return SelectedKubeconfig{Path: dir.Kubeconfig(), DataDir: string(dir), UpCommand: upCommand(f.DataDir), Overlooked: kubeconfigVariable(e) != "" && kubeconfigVariable(e) != dir.Kubeconfig()}, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return SelectedKubeconfig{}, fault.New(fault.Invalid, ReasonKubeconfig, "the kubeconfig of the management cluster cannot be read").From(err)
	}
	switch of := managerOf(dir); {
	case f.DataDir == "" || of.ManagerOf == "":
	case of.Kubeconfig == "":
		return SelectedKubeconfig{}, fault.New(fault.Invalid, ReasonKubeconfig, "%s is the data directory of a manager of %s: provide the kubeconfig of that cluster with --kubeconfig", dir, of.ManagerOf)
	default:
		return SelectedKubeconfig{Path: of.Kubeconfig, Context: of.Context, Server: of.ManagerOf}, nil
	}
	if f.DataDir != "" || !hasDefaultKubeconfig(e) {
		return SelectedKubeconfig{}, fault.New(fault.Unreachable, ReasonNotRunning,
			"no management cluster has been started in %s; \"%s\" starts it", dir, upCommand(f.DataDir))
	}
	return ofDataDir("", kubeconfigVariable(e)), nil
}

// ofDataDir returns the selection of a path. It has the data directory if the kubeconfig is the one of a data
// directory, which "slipway up" prints for KUBECONFIG.
func ofDataDir(path, kubeconfig string) SelectedKubeconfig {
	out := SelectedKubeconfig{Path: path}
	absolute, err := filepath.Abs(kubeconfig)
	if err != nil {
		return out
	}
	dir := datadir.Dir(filepath.Dir(absolute))
	if state, err := datadir.Inspect(dir); err == nil && state.Exists && absolute == dir.Kubeconfig() {
		out.DataDir, out.UpCommand = string(dir), upCommand(string(dir))
	}
	return out
}

// managerOf returns the "slipway manager" that uses the directory, even if it is not running, because its management
// cluster may be running. It is empty if there is none.
func managerOf(dir datadir.Dir) datadir.Holder {
	state, err := datadir.Inspect(dir)
	if err != nil || state.Holder.ManagerOf == "" {
		return datadir.Holder{}
	}
	return state.Holder
}

// kubeconfigVariable returns the value of KUBECONFIG.
func kubeconfigVariable(e term.Env) string { return e.Getenv(clientcmd.RecommendedConfigPathEnvVar) }

// hasDefaultKubeconfig reports whether the loading rules of kubectl find an existing kubeconfig.
func hasDefaultKubeconfig(e term.Env) bool {
	for _, path := range loadingRules(e, "").Precedence {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}

// loadingRules returns the loading rules of kubectl, or rules for the given path.
func loadingRules(e term.Env, path string) *clientcmd.ClientConfigLoadingRules {
	if path != "" {
		return &clientcmd.ClientConfigLoadingRules{ExplicitPath: path}
	}
	if list := kubeconfigVariable(e); list != "" {
		return &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(list)}
	}
	return &clientcmd.ClientConfigLoadingRules{
		Precedence: []string{filepath.Join(e.Getenv("HOME"), clientcmd.RecommendedHomeDir, clientcmd.RecommendedFileName)},
	}
}

// load returns the client configuration of a kubeconfig. [Flags.Connect] calls it with the result of [Flags.Find].
func (f *Flags) load(e term.Env, found SelectedKubeconfig) clientcmd.ClientConfig {
	overrides := &clientcmd.ConfigOverrides{CurrentContext: cmp.Or(f.Context, found.Context)}
	if f.Namespace != "" {
		overrides.Context = clientcmdapi.Context{Namespace: f.Namespace}
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(loadingRules(e, found.Path), overrides)
}

// RepeatFlags returns the flags that select the management cluster, for printed commands.
func (f *Flags) RepeatFlags() string {
	out := ""
	for _, flag := range [][2]string{{"--kubeconfig", f.Kubeconfig}, {"--kubeconfig-context", f.Context}, {"--data-dir", f.DataDir}} {
		if flag[1] != "" {
			out += " " + flag[0] + " " + flag[1]
		}
	}
	return out
}

// upCommand returns the command that starts the management cluster of a data directory; empty: the default one.
func upCommand(dataDir string) string {
	if dataDir != "" {
		return "slipway up -d --data-dir " + dataDir
	}
	return "slipway up -d"
}

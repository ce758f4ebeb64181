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

// Name and usage text of the flag for the kubeconfig.
const (
	KubeconfigFlag  = "kubeconfig"
	KubeconfigUsage = "path of the management cluster's kubeconfig (default: that of the data directory, else KUBECONFIG)"
)

// Flags select the management cluster and a namespace.
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

// Add adds the flags to a command for namespaced objects.
func Add(flags *pflag.FlagSet) *Flags {
	f := AddClusterScoped(flags)
	flags.StringVarP(&f.Namespace, "namespace", "n", "", "namespace of the cluster (default: that of the context)")
	return f
}

// AddClusterScoped adds the flags, except the namespace, to a command.
func AddClusterScoped(flags *pflag.FlagSet) *Flags {
	f := &Flags{}
	flags.StringVar(&f.Kubeconfig, KubeconfigFlag, "", KubeconfigUsage)
	flags.StringVar(&f.Context, "kubeconfig-context", "", "context in the kubeconfig (default: its current one)")
	flags.StringVar(&f.DataDir, "data-dir", "", "data directory of \"slipway up\" (default: $XDG_DATA_HOME/slipway or ~/.local/share/slipway)")
	return f
}

// Found is the kubeconfig that the flags select.
type Found struct {
	// Path is the path of the kubeconfig; empty: the loading rules of kubectl.
	Path string
	// DataDir is set if the kubeconfig belongs to a data directory.
	DataDir string
	// Context is the context to use unless the flags contain one; empty: the current one.
	Context string
	// Server is the required API server of the kubeconfig; empty: any.
	Server string
	// Overlooked is true if KUBECONFIG contains another kubeconfig.
	Overlooked bool
}

// Find returns the kubeconfig that the flags select.
func (f *Flags) Find(e term.Env) (Found, error) {
	if f.Kubeconfig != "" {
		return Found{Path: f.Kubeconfig}, nil
	}
	dir, err := e.DataDir(f.DataDir)
	if err != nil {
		return Found{}, err
	}
	if e.Program == term.Clusterctl && f.DataDir == "" && named(e) != "" {
		if !usual(e) {
			return Found{}, fault.New(fault.Invalid, ReasonKubeconfig, "KUBECONFIG names %s, which does not exist", named(e))
		}
		return Found{}, nil
	}
	_, err = os.Stat(dir.Kubeconfig())
	if err == nil {
		return Found{Path: dir.Kubeconfig(), DataDir: string(dir), Overlooked: named(e) != "" && named(e) != dir.Kubeconfig()}, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return Found{}, fault.New(fault.Invalid, ReasonKubeconfig, "the kubeconfig of the management cluster cannot be read").From(err)
	}
	switch of := managerOf(dir); {
	case f.DataDir == "" || of.ManagerOf == "":
	case of.Kubeconfig == "":
		return Found{}, fault.New(fault.Invalid, ReasonKubeconfig, "%s is the data directory of a manager of %s: name the kubeconfig of that cluster with --kubeconfig", dir, of.ManagerOf)
	default:
		return Found{Path: of.Kubeconfig, Context: of.Context, Server: of.ManagerOf}, nil
	}
	if f.DataDir != "" || !usual(e) {
		return Found{}, fault.New(fault.Unreachable, ReasonNotRunning,
			"no management cluster has been started in %s; \"%s\" starts it", dir, f.Up())
	}
	return Found{}, nil
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

// named returns the value of KUBECONFIG.
func named(e term.Env) string { return e.Getenv(clientcmd.RecommendedConfigPathEnvVar) }

// usual reports whether the loading rules of kubectl find an existing kubeconfig.
func usual(e term.Env) bool {
	for _, path := range rules(e, "").Precedence {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}

// rules returns the loading rules of kubectl, or rules for the given path.
func rules(e term.Env, path string) *clientcmd.ClientConfigLoadingRules {
	if path != "" {
		return &clientcmd.ClientConfigLoadingRules{ExplicitPath: path}
	}
	if list := named(e); list != "" {
		return &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(list)}
	}
	return &clientcmd.ClientConfigLoadingRules{
		Precedence: []string{filepath.Join(e.Getenv("HOME"), clientcmd.RecommendedHomeDir, clientcmd.RecommendedFileName)},
	}
}

// load returns the client configuration of a kubeconfig.
func (f *Flags) load(e term.Env, found Found) clientcmd.ClientConfig {
	overrides := &clientcmd.ConfigOverrides{CurrentContext: cmp.Or(f.Context, found.Context)}
	if f.Namespace != "" {
		overrides.Context = clientcmdapi.Context{Namespace: f.Namespace}
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules(e, found.Path), overrides)
}

// Again returns the flags that select the management cluster, for printed commands.
func (f *Flags) Again() string {
	out := ""
	for _, flag := range [][2]string{{"--kubeconfig", f.Kubeconfig}, {"--kubeconfig-context", f.Context}, {"--data-dir", f.DataDir}} {
		if flag[1] != "" {
			out += " " + flag[0] + " " + flag[1]
		}
	}
	return out
}

// Up returns the command that starts the management cluster that the flags select.
func (f *Flags) Up() string {
	if f.DataDir != "" {
		return "slipway up -d --data-dir " + f.DataDir
	}
	return "slipway up -d"
}

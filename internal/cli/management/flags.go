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

	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
)

// Reasons of the faults of this package.
const (
	// ReasonNotRunning says that no management cluster was found; the kind is Unreachable.
	ReasonNotRunning = "ManagementClusterNotRunning"
	// ReasonNotReady says that the management cluster or its manager runs, and does not answer yet, or not in time; the kind is Unreachable.
	ReasonNotReady = "ManagementClusterNotReady"
	// ReasonKubeconfig says that a kubeconfig cannot be used; the kind is Invalid.
	ReasonKubeconfig = "InvalidKubeconfig"
	// ReasonNotInstalled says that the cluster has no Cluster API; the kind is Invalid.
	ReasonNotInstalled = "ClusterAPINotInstalled"
)

// The flag that names a kubeconfig, and what it says of itself.
const (
	KubeconfigFlag  = "kubeconfig"
	KubeconfigUsage = "path of the management cluster's kubeconfig (default: that of the data directory, else KUBECONFIG)"
)

// Flags say which management cluster, and which namespace in it.
type Flags struct {
	// Kubeconfig is a path; empty: see [Flags.Find].
	Kubeconfig string
	// Context in the kubeconfig; empty: its current one.
	Context string
	// DataDir of `slipway up`; empty: the default.
	DataDir string
	// Namespace; empty: that of the context, else "default".
	Namespace string
}

// Add adds the flags to a verb that works in one namespace.
func Add(flags *pflag.FlagSet) *Flags {
	f := AddClusterScoped(flags)
	flags.StringVarP(&f.Namespace, "namespace", "n", "", "namespace of the cluster (default: that of the context)")
	return f
}

// AddClusterScoped adds the flags to a verb that works in no namespace.
func AddClusterScoped(flags *pflag.FlagSet) *Flags {
	f := &Flags{}
	flags.StringVar(&f.Kubeconfig, KubeconfigFlag, "", KubeconfigUsage)
	flags.StringVar(&f.Context, "kubeconfig-context", "", "context in the kubeconfig (default: its current one)")
	flags.StringVar(&f.DataDir, "data-dir", "", "data directory of \"slipway up\" (default: $XDG_DATA_HOME/slipway or ~/.local/share/slipway)")
	return f
}

// Found is a kubeconfig that was found.
type Found struct {
	// Path of the kubeconfig; empty: the usual rules of kubectl.
	Path string
	// DataDir is set when the kubeconfig is that of a data directory.
	DataDir string
	// Context of the kubeconfig, where the flags name none; empty: its current one.
	Context string
	// Server is the API server that the kubeconfig has to name; empty: any.
	Server string
	// Overlooked: KUBECONFIG names another one.
	Overlooked bool
}

// Find returns the kubeconfig that the flags mean.
func (f *Flags) Find(e env.Env) (Found, error) {
	if f.Kubeconfig != "" {
		return Found{Path: f.Kubeconfig}, nil
	}
	dir, err := e.DataDir(f.DataDir)
	if err != nil {
		return Found{}, err
	}
	if e.Program == env.Clusterctl && f.DataDir == "" && named(e) != "" {
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

// managerOf is the "slipway manager" that has the directory, whether or not it runs: its management cluster may run without it. Empty: none
// has.
func managerOf(dir datadir.Dir) datadir.Holder {
	state, err := datadir.Inspect(dir)
	if err != nil || state.Holder.ManagerOf == "" {
		return datadir.Holder{}
	}
	return state.Holder
}

// named is what KUBECONFIG names; empty: nothing.
func named(e env.Env) string { return e.Getenv(clientcmd.RecommendedConfigPathEnvVar) }

// usual reports whether the usual rules of kubectl name a kubeconfig that exists.
func usual(e env.Env) bool {
	for _, path := range rules(e, "").Precedence {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}

// rules are how kubectl finds a kubeconfig, or the path.
func rules(e env.Env, path string) *clientcmd.ClientConfigLoadingRules {
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

// load returns the client configuration of a found kubeconfig.
func (f *Flags) load(e env.Env, found Found) clientcmd.ClientConfig {
	overrides := &clientcmd.ConfigOverrides{CurrentContext: cmp.Or(f.Context, found.Context)}
	if f.Namespace != "" {
		overrides.Context = clientcmdapi.Context{Namespace: f.Namespace}
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules(e, found.Path), overrides)
}

// Again repeats the flags that say which management cluster, for a command that is shown.
func (f *Flags) Again() string {
	out := ""
	for _, flag := range [][2]string{{"--kubeconfig", f.Kubeconfig}, {"--kubeconfig-context", f.Context}, {"--data-dir", f.DataDir}} {
		if flag[1] != "" {
			out += " " + flag[0] + " " + flag[1]
		}
	}
	return out
}

// Up is the command that starts the management cluster that the flags mean.
func (f *Flags) Up() string {
	if f.DataDir != "" {
		return "slipway up -d --data-dir " + f.DataDir
	}
	return "slipway up -d"
}

package cluster

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Reasons of the faults of this command.
const (
	reasonNoFile       = "NoKubeconfigFile"
	reasonNotMergeable = "KubeconfigNotMergeable"
)

// contextName returns the name of the context that --merge writes. It is unique for the cluster, because names of
// namespaces do not contain the separator, and must stay the same, so that a later merge replaces the context.
func contextName(namespace, cluster string) string {
	if namespace == "default" {
		return "slipway-" + cluster
	}
	return "slipway-" + namespace + "/" + cluster
}

// mergeKubeconfig implements "get kubeconfig --merge": it adds the current context of a kubeconfig to the file of
// kubectl, and replaces the result of an earlier merge.
func mergeKubeconfig(e term.Env, flags *management.Flags, name string, data []byte) error {
	from, err := clientcmd.Load(data)
	if err != nil {
		return err
	}
	context := from.Contexts[from.CurrentContext]
	if context == nil || from.Clusters[context.Cluster] == nil || from.AuthInfos[context.AuthInfo] == nil {
		return fault.New(fault.Invalid, reasonNotMergeable, "the kubeconfig of the cluster has no current context with a cluster and a user: print it without --merge")
	}
	path, err := mergeTarget(e, flags)
	if err != nil {
		return err
	}
	options := clientcmd.NewDefaultPathOptions()
	options.LoadingRules.ExplicitPath = path
	to, err := options.GetStartingConfig()
	if err != nil {
		return fault.New(fault.Invalid, reasonNotMergeable, "%s cannot be read: %v", path, err).From(err)
	}
	if to.Contexts == nil {
		to = clientcmdapi.NewConfig()
	}
	to.Clusters[name], to.AuthInfos[name] = from.Clusters[context.Cluster], from.AuthInfos[context.AuthInfo]
	to.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: context.Namespace}
	to.CurrentContext = name
	if err := clientcmd.ModifyConfig(options, *to, true); err != nil {
		return fault.New(fault.Invalid, reasonNotMergeable, "%s cannot be written: %v", path, err).From(err)
	}
	_, err = fmt.Fprintf(e.Err, "Context %q is in %s, and the current one there.\n", name, path)
	return err
}

// mergeTarget returns the first file that kubectl reads, except the kubeconfig of the management cluster, which
// KUBECONFIG often contains.
func mergeTarget(e term.Env, flags *management.Flags) (string, error) {
	managed := flags.Kubeconfig
	if found, err := flags.Find(e); err == nil && managed == "" {
		managed = found.Path // or the kubeconfig that a manager was started with
	}
	files := filepath.SplitList(e.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	if home := e.Getenv("HOME"); home != "" {
		files = append(files, filepath.Join(home, clientcmd.RecommendedHomeDir, clientcmd.RecommendedFileName))
	}
	for _, f := range files {
		if f != "" && !sameFile(f, managed) {
			return filepath.Abs(f)
		}
	}
	return "", fault.New(fault.Invalid, reasonNoFile, "the only kubeconfig to merge into is the one of the management cluster, whose current context would change: set KUBECONFIG to another file, or use --user and --output-file instead of --merge")
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

package manager

import (
	"cmp"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
)

// reasonNoCluster means that no management cluster was selected.
const reasonNoCluster = "NoManagementCluster"

// command returns the shell command that starts this manager again.
func (o *options) command(e term.Env) string {
	words := []string{"slipway", "manager"}
	if o.kubeconfig == "" && e.Getenv("KUBECONFIG") != "" {
		words = append([]string{"KUBECONFIG=" + quoted(e.Getenv("KUBECONFIG"))}, words...)
	}
	for _, f := range o.set {
		value := f.Value.String()
		if list, isList := f.Value.(pflag.SliceValue); isList {
			value = strings.Join(list.GetSlice(), ",")
		}
		words = append(words, quoted("--"+f.Name+"="+value))
	}
	return strings.Join(words, " ")
}

// withLast adds the command line of the last manager with the same data directory to an error about a missing
// management cluster.
func (o *options) withLast(e term.Env, err error) error {
	known := fault.As(err)
	if known == nil || known.Reason != reasonNoCluster || o.dataDir == "" {
		return err
	}
	dir, dirErr := e.DataDir(o.dataDir)
	if dirErr != nil {
		return err
	}
	state, stateErr := datadir.Inspect(dir)
	if stateErr != nil || state.Holder.Command == "" {
		return err
	}
	return fault.New(fault.Invalid, reasonNoCluster, "%s; the last manager of %s was started with: %s", known.Message, dir, state.Holder.Command)
}

// withoutRights adds a reference to the required rights to a Forbidden error.
func withoutRights(err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return fault.New(fault.Invalid, "Forbidden", "%v; \"slipway manager --print-roles\" prints the rights that it needs, for an administrator to apply", err).From(err)
}

// kubeconfigFile returns the absolute path of the kubeconfig. It is empty if there is none, or if there are several.
func (o *options) kubeconfigFile(e term.Env) string {
	path := cmp.Or(o.kubeconfig, e.Getenv("KUBECONFIG"))
	if path == "" || o.kubeconfig == "" && len(filepath.SplitList(path)) > 1 {
		return ""
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	return absolute
}

// diagnosticsPort returns the port on 127.0.0.1 that serves plans. It is empty if plans are not served, or at another
// address: there, the same port on 127.0.0.1 may belong to another program, which would receive the user's credentials.
func (o *options) diagnosticsPort() string {
	host, port, err := net.SplitHostPort(o.config.Endpoints.Diagnostics)
	if err != nil || port == "0" || o.config.Endpoints.Insecure || !slices.Contains([]string{"", "0.0.0.0", "::", "127.0.0.1"}, host) {
		return ""
	}
	return port
}

// plain contains the characters that need no quoting in a shell.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,./:@%"

func quoted(word string) string {
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

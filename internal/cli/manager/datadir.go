package manager

import (
	"cmp"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager"
)

// checkDirectory rejects a data directory that is in use, or that belongs to another management cluster. The manager
// command calls it before the first request.
func (o *options) checkDirectory(e term.Env, server string) error {
	dir, err := e.DataDir(o.dataDir)
	if err != nil {
		return err
	}
	state, err := datadir.Inspect(dir)
	if err != nil {
		return err
	}
	_, err = os.Stat(dir.Etcd())
	switch of := state.Holder.ManagerOf; {
	case state.Held:
		return datadir.HeldFault(dir, state.Holder)
	case err == nil:
		return fault.New(fault.Invalid, "AnothersDirectory", "data directory %s belongs to the management cluster of \"slipway up\": choose another --data-dir", dir)
	case of != "" && of != server:
		return fault.New(fault.Invalid, "AnothersDirectory", "data directory %s belongs to a manager of %s: choose another --data-dir, or delete its resources on this host: "+
			"slipway down --delete --data-dir %s. Where %s is the same management cluster at another address, remove %s first", dir, of, dir, server, dir.Lock())
	}
	return nil
}

// open locks the data directory, so that no other manager can use it. If the manager cannot be started, disown restores
// the previous record of the directory, or removes the directory if it did not exist. run calls it after checkPorts.
// It sets since, which holder reads.
func (o *options) open(e term.Env, cfg manager.Config) (opened *datadir.Handle, disown func(), err error) {
	dir, err := e.DataDir(o.dataDir)
	if err != nil {
		return nil, nil, err
	}
	before, err := datadir.Inspect(dir)
	if err != nil {
		return nil, nil, err
	}
	_, absent := os.Stat(string(dir))
	o.since = e.Now()
	opened, err = datadir.Open(dir, o.holder(e, cfg))
	return opened, func() {
		_ = opened.UpdateHolder(before.Holder)
		if errors.Is(absent, fs.ErrNotExist) {
			_ = os.RemoveAll(string(dir))
		}
	}, err
}

// holder returns the record of this manager in the data directory, which remains after it stops: its command line and
// the objects it reconciles. run updates the record when the controllers work.
func (o *options) holder(e term.Env, cfg manager.Config) datadir.Holder {
	out := datadir.CurrentProcess(o.since)
	out.ManagerOf, out.Command = cfg.REST.Host, o.command(e)
	out.Kubeconfig, out.Context, out.Diagnostics = o.kubeconfigFile(e), cmp.Or(o.context, o.current), o.diagnosticsPort()
	out.Namespace, out.WatchFilter = o.namespace, cfg.WatchFilter
	if cfg.LeaderElection.Enabled {
		out.Lease = cfg.Lease().String()
	}
	return out
}

// reasonNoCluster means that no management cluster was selected. access returns it (manager.go), and addLastCommand
// recognizes it.
const reasonNoCluster = "NoManagementCluster"

// command returns the shell command that starts this manager again. `slipway status`, down, up and explain print it.
func (o *options) command(e term.Env) string {
	words := []string{"slipway", "manager"}
	if o.kubeconfig == "" && e.Getenv("KUBECONFIG") != "" {
		paths := filepath.SplitList(e.Getenv("KUBECONFIG"))
		for i := range paths {
			paths[i] = absolute(paths[i])
		}
		words = append([]string{"KUBECONFIG=" + shellQuote(strings.Join(paths, string(filepath.ListSeparator)))}, words...)
	}
	for _, f := range o.set {
		value := f.Value.String()
		if list, isList := f.Value.(pflag.SliceValue); isList {
			value = strings.Join(list.GetSlice(), ",")
		}
		if namesPath(f.Name) {
			value = absolute(value)
		}
		words = append(words, shellQuote("--"+f.Name+"="+value))
	}
	return strings.Join(words, " ")
}

// namesPath reports whether the value of a flag is a path.
func namesPath(flag string) bool {
	return slices.Contains([]string{"bundles", "config", "kubeconfig"}, flag) || strings.HasSuffix(flag, "-file") || strings.HasSuffix(flag, "-dir")
}

// absolute returns a path that is valid in any working directory.
func absolute(path string) string {
	if out, err := filepath.Abs(path); path != "" && err == nil {
		return out
	}
	return path
}

// addLastCommand adds the command line of the last manager with the same data directory to an error about a missing
// management cluster. run passes the error of complete to it.
func (o *options) addLastCommand(e term.Env, err error) error {
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

// addRightsHint adds a reference to the required rights to a Forbidden error. run passes the error of the manager to
// it.
func addRightsHint(err error) error {
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

// unquotedCharacters contains the characters that need no quoting in a shell.
const unquotedCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,./:@%"

func shellQuote(word string) string {
	if word != "" && strings.Trim(word, unquotedCharacters) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

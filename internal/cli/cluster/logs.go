package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/childproc"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/supervisor"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/local/container"
)

// Reasons of the faults of this command.
const (
	reasonNoLog     = "NoLog"
	reasonAmbiguous = "AmbiguousName"
)

// defaultLines is the default for --tail.
const defaultLines = 100

// logsFlags holds the flag values. Its methods manager, plane and node implement the subcommands.
type logsFlags struct {
	dataDir, namespace  string
	kubeconfig, context string
	lines               int
	follow              bool
	units               []string
	bootstrap           bool
}

// LogsCommand returns the logs command, for package cli.
func LogsCommand(e term.Env) *cobra.Command {
	var f logsFlags
	cmd := &cobra.Command{
		Use:   "logs",
		Short: "Show the logs of the manager, a hosted control plane or a node",
		Long: `Show the logs of processes and containers on this host, and of nodes on hosts over SSH. The logs of
this host are available even if the API server is not.

  manager              the management cluster and the controllers
  control-plane NAME   a hosted control plane; NAME is the name of its Cluster, or its own name
  node NAME            the journal of a node (kubelet, containerd); NAME is the name of the Node, LocalMachine or SSHMachine`,
		Example: `  slipway logs manager -f
  slipway logs control-plane demo --tail 500
  slipway logs node demo-workers-x7k2p --unit kubelet
  slipway logs node demo-workers-x7k2p --bootstrap`,
	}
	term.AddDataDirFlag(cmd.PersistentFlags(), &f.dataDir)
	cmd.PersistentFlags().IntVar(&f.lines, "tail", defaultLines, "number of recent `LINES` to show; -1: all lines")
	cmd.PersistentFlags().BoolVarP(&f.follow, "follow", "f", false, "follow the log until interrupted")
	manager := &cobra.Command{
		Use: "manager", Short: "Show the log of the management cluster and the controllers", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.manager(cmd.Context(), e) },
	}
	plane := &cobra.Command{
		Use: "control-plane NAME", Short: "Show the log of a hosted control plane", Args: term.ExactlyOneArgument("NAME"),
		Long: "Show the log of a hosted control plane. NAME is the name of its Cluster, or its own name.",
		RunE: func(cmd *cobra.Command, args []string) error { return f.plane(cmd.Context(), e, args[0]) },
	}
	node := &cobra.Command{
		Use: "node NAME", Short: "Show the journal of a node in a container or on a host over SSH", Args: term.ExactlyOneArgument("NAME"),
		Long: `Show the journal of a node. NAME is the name of the Node, or of its LocalMachine or SSHMachine. A node in
a container of this host is found first. The journal of an SSHMachine is read over SSH from this
machine: your kubeconfig has to allow you to read its SSHHost and the Secret with the credentials, as
an operator may. It cannot be followed, and by default only the unit kubelet is shown.`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.node(cmd.Context(), e, args[0]) },
	}
	node.Flags().StringSliceVar(&f.units, "unit", nil, "systemd units to show, for example kubelet (default: all)")
	node.Flags().BoolVar(&f.bootstrap, "bootstrap", false, "show the output of the node's bootstrap data instead of its journal; it can contain secrets")
	node.Flags().StringVar(&f.kubeconfig, management.KubeconfigFlag, "", management.KubeconfigUsage+"; nodes in containers are ignored if it is set")
	node.Flags().StringVar(&f.context, "kubeconfig-context", "", "context to use in the kubeconfig (default: its current context)")
	node.MarkFlagsMutuallyExclusive("bootstrap", "unit")
	for _, c := range []*cobra.Command{plane, node} {
		c.Flags().StringVarP(&f.namespace, "namespace", "n", "", "namespace of the control plane, LocalMachine or SSHMachine (default: any)")
	}
	cmd.AddCommand(manager, plane, node)
	term.MarkGroup(cmd)
	return cmd
}

func (f logsFlags) manager(ctx context.Context, e term.Env) error {
	dir, err := e.DataDir(f.dataDir)
	if err != nil {
		return err
	}
	missing := fmt.Sprintf("no management cluster has been started in %s; \"slipway up -d\" starts it", dir)
	if state, err := datadir.Inspect(dir); err == nil && state.Holder.ManagerOf != "" {
		missing = fmt.Sprintf("%s is the data directory of a \"slipway manager\", which logs to its standard error: to where it was started from, such as the journal of its service", dir)
	}
	return f.file(ctx, e.Out, dir.Log(), missing)
}

func (f logsFlags) plane(ctx context.Context, e term.Env, name string) error {
	dir, err := e.DataDir(f.dataDir)
	if err != nil {
		return err
	}
	all, err := supervisor.Inspect(dir.Planes())
	if err != nil {
		return err
	}
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	found, err := candidates{"hosted control plane", "on this host", names}.choose(name, f.namespace)
	if err != nil {
		return err
	}
	return f.file(ctx, e.Out, processconfig.Folder(dir.Path("planes", found)).Log(), "hosted control plane "+found+" has logged nothing yet")
}

func (f logsFlags) file(ctx context.Context, w io.Writer, path, missing string) error {
	err := childproc.WriteLogLines(ctx, path, f.lines, f.follow, w)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Invalid, reasonNoLog, "%s", missing).From(err)
	}
	return err
}

func (f logsFlags) node(ctx context.Context, e term.Env, name string) error {
	if f.kubeconfig != "" {
		_, err := f.host(ctx, e, name)
		return err
	}
	found, err := f.container(ctx, e, name)
	if found || ctx.Err() != nil {
		return err
	}
	if hasHosts, other := f.host(ctx, e, name); hasHosts {
		return other
	}
	return err
}

// container writes the journal of a node in a container. It reports whether there is such a node.
func (f logsFlags) container(ctx context.Context, e term.Env, name string) (found bool, err error) {
	dir, err := e.DataDir(f.dataDir)
	if err != nil {
		return false, err
	}
	instance, err := datadir.ReadInstance(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, fault.New(fault.Invalid, reasonNoLog, "no management cluster has been started in %s; \"slipway up -d\" starts it", dir)
	}
	if err != nil {
		return false, err
	}
	engine, err := container.New(container.Config{Instance: instance, Ownership: hosttransfer.Open(dir, instance)})
	if err != nil {
		return false, err
	}
	defer func() { _ = engine.Close() }()
	machines, err := engine.List(ctx)
	if err != nil {
		return false, err
	}
	m, err := f.machine(machines, name)
	if err != nil {
		return false, err
	}
	err = engine.Journal(ctx, backend.Ref{Object: m.Owner.Object, Name: m.Name}, container.Journal{Bootstrap: f.bootstrap, Lines: f.lines, Units: f.units, Follow: f.follow}, e.Out)
	if f.follow && ctx.Err() != nil {
		return true, nil
	}
	return true, err
}

// machine returns the machine of this host with the given name.
func (f logsFlags) machine(all []backend.Machine, name string) (backend.Machine, error) {
	byName := map[string]backend.Machine{}
	var names []string
	for _, m := range all {
		for _, n := range []string{m.Owner.Object.Name, m.Hostname} {
			key := m.Owner.Object.Namespace + "." + n
			if _, there := byName[key]; n != "" && !there {
				byName[key] = m
				names = append(names, key)
			}
		}
	}
	found, err := candidates{"node in a container", "on this host", names}.choose(name, f.namespace)
	return byName[found], err
}

// candidates are things with logs, what and where they are, and their names as NAMESPACE.NAME. The logs of hosted
// control planes, nodes in containers and hosts over SSH are found with it. A namespace contains no dot, so the first
// dot separates it from the name.
type candidates struct {
	what, where string
	names       []string
}

// choose returns the candidate that a user-specified name matches: the one with exactly this name, or else the only one
// whose name begins with it and a hyphen, like the objects of a Cluster.
func (c candidates) choose(name, namespace string) (string, error) {
	var exact, begins []string
	for _, full := range c.names {
		in, own, _ := strings.Cut(full, ".")
		switch {
		case namespace != "" && in != namespace:
		case own == name:
			exact = append(exact, full)
		case strings.HasPrefix(own, name+"-"):
			begins = append(begins, full)
		}
	}
	found := exact
	if len(found) == 0 {
		found = begins
	}
	slices.Sort(found)
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", fault.New(fault.Invalid, reasonAmbiguous, "%[2]q matches more than one %[1]s: %[3]s; use the full name, and -n for the namespace",
			c.what, name, formatNames(found))
	case len(c.names) == 0:
		return "", fault.New(fault.Invalid, reasonNoLog, "there is no %s %s", c.what, c.where)
	}
	return "", fault.New(fault.Invalid, reasonNoLog, "there is no %s %q %s; there are: %s", c.what, name, c.where, formatNames(c.names))
}

// maxListedNames limits the number of names in a message.
const maxListedNames = 10

// formatNames formats names as NAMESPACE/NAME.
func formatNames(names []string) string {
	var out []string
	for _, n := range slices.Sorted(slices.Values(names)) {
		out = append(out, strings.Replace(n, ".", "/", 1))
	}
	if more := len(out) - maxListedNames; more > 0 {
		out = append(out[:maxListedNames], fmt.Sprintf("%d more", more))
	}
	return strings.Join(out, ", ")
}

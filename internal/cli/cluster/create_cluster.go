package cluster

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/config/classes"
	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/subnet"
	"github.com/slipwayhq/slipway/internal/operate/create"
	"github.com/slipwayhq/slipway/internal/version"
)

// CreateClusterCommand returns the create cluster command, for package cli.
func CreateClusterCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster NAME",
		Short: "Create a cluster from a ClusterClass and wait for its nodes",
		Long: `Create a cluster from a ClusterClass. Slipway includes five classes, and creates them in the
namespace if they do not exist:

  local        a hosted control plane, and nodes in containers on this host
  kubeadm      a control plane and other nodes in containers on this host
  ssh          a hosted control plane, and nodes on machines over SSH
  ssh-kubeadm  a control plane and other nodes on machines over SSH
  simulated    a hosted control plane and nodes that are only simulated

The command checks that this host has the node images, the memory and the disk space that the
nodes need at least, or that there are enough SSHHosts. It applies a regular Cluster API manifest,
which --dry-run prints, and waits until all nodes are Ready and the add-ons, such as DNS, are
available. If you interrupt the wait, the creation of the cluster continues.`,
		Example: `  slipway create cluster demo --workers 2
  slipway create cluster demo --set podSecurity=baseline --set nodeResources.cpus=2
  slipway create cluster demo --class kubeadm --control-planes 3
  slipway create cluster demo --class ssh-kubeadm --control-planes 3 --workers 2 --set virtualIP=192.0.2.10
  slipway create cluster many --class simulated --workers 50
  slipway create cluster demo --workers 2 --dry-run > demo.yaml`,
		Args: term.ExactlyOneArgument("NAME"),
	}
	f := &createClusterFlags{connection: management.AddFlags(cmd.Flags())}
	f.add(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.check(args[0]); err != nil {
			return err
		}
		return f.run(cmd.Context(), e, args[0])
	}
	return cmd
}

// createClusterFlags holds the flag values. check sets ref from class, and prefix from subnet; without --subnet,
// chooseNetwork selects prefix. objects sets variables and hosts from the class (create_cluster_run.go). The command
// calls check, then run. After objects, prefix is valid only if the nodes are containers; checkHost and nextSteps rely
// on that.
type createClusterFlags struct {
	connection    *management.Flags
	class         string
	settings      []string
	controlPlanes int32
	workers       int32
	version       string
	subnet        string
	dryRun        bool
	skipChecks    bool
	timeout       *time.Duration
	format        *term.Format

	prefix    netip.Prefix
	hosts     bool // the nodes are machines over SSH
	variables []clusterv1.ClusterVariable
	ref       clusterv1.ClusterClassRef
}

func (f *createClusterFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.class, "class", classes.Local, "ClusterClass, as `NAME` or NAMESPACE/NAME; \"slipway get classes\" lists them")
	set.StringArrayVar(&f.settings, "set", nil, "variable of the class, as NAME=VALUE or NAME.FIELD=VALUE; may be repeated")
	set.Int32Var(&f.controlPlanes, "control-planes", 0, "number of control plane nodes; 0: one if the control plane runs on Machines, otherwise none")
	set.Int32Var(&f.workers, "workers", 1, "number of worker nodes")
	set.StringVar(&f.version, "kubernetes-version", "", "Kubernetes version (default: the version that this binary includes)")
	set.StringVar(&f.subnet, "subnet", "", "IPv4 range between /8 and /20 for nodes, Pods and Services; a range in use is rejected (default: a free /18 of 172.16.0.0/12)")
	set.BoolVar(&f.dryRun, "dry-run", false, "print the manifest and change nothing")
	set.BoolVar(&f.skipChecks, "skip-checks", false, "create the cluster even if this host lacks node images, memory or disk space for it, or SSHHosts are missing")
	f.timeout = term.AddOptionalWaitTimeout(set, 10*time.Minute, "how long to wait for the nodes")
	f.format = term.AddOutputFlag(set)
}

// check validates the flags before any request or change.
func (f *createClusterFlags) check(name string) error {
	if err := create.CheckName(name); err != nil {
		return err
	}
	if err := f.checkVersion(); err != nil {
		return err
	}
	f.ref.Name = f.class
	if namespace, name, ok := strings.Cut(f.class, "/"); ok {
		f.ref = clusterv1.ClusterClassRef{Namespace: namespace, Name: name}
	}
	if f.workers < 0 {
		return usage("--workers cannot be negative")
	}
	if f.controlPlanes < 0 {
		return usage("--control-planes cannot be negative; left out, a control plane on Machines has one")
	}
	if f.subnet != "" {
		var err error
		if f.prefix, err = netip.ParsePrefix(f.subnet); err != nil {
			return usage("--subnet %q is not a range of addresses, for example 172.31.0.0/16", f.subnet)
		}
		if _, err := subnet.NewLayout(f.prefix); err != nil {
			return usage("--subnet: %v", err)
		}
	}
	return nil
}

func (f *createClusterFlags) checkVersion() error {
	if f.version == "" {
		f.version = buildinfo.Kubernetes()
		return nil
	}
	if !strings.HasPrefix(f.version, "v") {
		f.version = "v" + f.version
	}
	if _, err := version.Parse(f.version); err != nil {
		return usage("--kubernetes-version %q is not a version, for example v1.36.3", f.version)
	}
	return nil
}

// checkNodeCapacity limits the number of nodes in containers by the Pod ranges that they need. chooseNetwork calls it
// when prefix is known.
func (f *createClusterFlags) checkNodeCapacity() error {
	layout, err := subnet.NewLayout(f.prefix)
	if err != nil {
		return err
	}
	if room := layout.Ranges().MaxNodes(); int(f.workers)+int(f.controlPlanes) > room {
		return usage("--workers %d%s: the network of the cluster has room for 0 to %d nodes; --subnet can name a wider one", f.workers, f.controlPlaneText(), room)
	}
	return nil
}

// controlPlaneText formats the number of control plane nodes. It returns an empty string if there are none.
func (f *createClusterFlags) controlPlaneText() string {
	if f.controlPlanes == 0 {
		return ""
	}
	return fmt.Sprintf(" and --control-planes %d", f.controlPlanes)
}

// usage returns an error about the arguments of "create cluster". The other files of the command call it as well.
func usage(message string, args ...any) error {
	return fault.New(fault.Invalid, "Usage", "%s", fmt.Sprintf(message, args...))
}

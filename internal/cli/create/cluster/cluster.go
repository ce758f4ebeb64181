package cluster

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/cli/argument"
	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/output"
	"github.com/slipwayhq/slipway/internal/clusterctl/cluster"
	"github.com/slipwayhq/slipway/internal/clusterctl/manifest"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providers/local/subnet"
)

// Command builds the verb.
func Command(e env.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster NAME",
		Short: "Create a cluster on this host, and wait until its nodes are ready",
		Long: `Create a cluster on this host: a hosted control plane, and a pool of nodes in containers. The command
applies an ordinary Cluster API manifest, which --dry-run prints, and waits until all nodes are Ready.
Interrupting the wait changes nothing: the creation of the cluster continues.`,
		Example: `  slipway create cluster demo --workers 2
  slipway create cluster demo --workers 2 --dry-run > demo.yaml`,
		Args: argument.One("NAME"),
	}
	f := &flags{connection: management.Add(cmd.Flags())}
	f.add(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.check(args[0]); err != nil {
			return err
		}
		return f.run(cmd.Context(), e, args[0])
	}
	return cmd
}

type flags struct {
	connection *management.Flags
	workers    int32
	version    string
	subnet     string
	dryRun     bool
	timeout    time.Duration
	format     *output.Format

	prefix netip.Prefix
}

func (f *flags) add(set *pflag.FlagSet) {
	set.Int32Var(&f.workers, "workers", 1, "number of nodes")
	set.StringVar(&f.version, "kubernetes-version", "", "Kubernetes version (default: the one that this binary carries)")
	set.StringVar(&f.subnet, "subnet", "", "IPv4 range between /8 and /20 for nodes, Pods and Services ; one that is taken is refused (default: a free /18 of 172.16.0.0/12)")
	set.BoolVar(&f.dryRun, "dry-run", false, "print the manifest and do nothing")
	set.DurationVar(&f.timeout, "wait-timeout", 10*time.Minute, "how long to wait for the nodes; 0 does not wait")
	f.format = output.Flag(set)
}

// check finds mistakes in the flags before anything is asked or written.
func (f *flags) check(name string) error {
	if err := cluster.CheckName(name); err != nil {
		return err
	}
	if f.version == "" {
		f.version = buildinfo.Kubernetes()
	}
	version, err := cluster.CheckVersion(f.version, []string{buildinfo.Kubernetes()})
	if err != nil {
		return err
	}
	f.version = version
	if f.timeout < 0 {
		return usage("--wait-timeout cannot be negative; 0 does not wait")
	}
	if f.subnet != "" {
		if f.prefix, err = netip.ParsePrefix(f.subnet); err != nil {
			return usage("--subnet %q is not a range of addresses, for example 172.31.0.0/16", f.subnet)
		}
		if _, err := subnet.Plan(f.prefix); err != nil {
			return usage("--subnet: %v", err)
		}
	}
	return f.checkWorkers()
}

// checkWorkers bounds the nodes by the ranges that their Pods need.
func (f *flags) checkWorkers() error {
	room := 32
	if f.prefix.IsValid() {
		layout, err := subnet.Plan(f.prefix)
		if err != nil {
			return err
		}
		room = layout.Ranges().MaxNodes()
	}
	if f.workers < 0 || int(f.workers) > room {
		return usage("--workers %d: the network of the cluster has room for 0 to %d nodes; --subnet can name a wider one", f.workers, room)
	}
	return nil
}

func usage(message string, args ...any) error {
	return fault.New(fault.Invalid, "Usage", "%s", fmt.Sprintf(message, args...))
}

// manifest is what the flags ask for, once the network is known.
func (f *flags) manifest(namespace, name string) manifest.Cluster {
	return manifest.Cluster{Namespace: namespace, Name: name, Version: f.version, Workers: f.workers, Subnet: f.prefix}
}

package manager

import (
	"cmp"
	"os"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/manager"
)

// holder returns the record of this manager in the data directory, which remains after it stops: its command line and
// the objects it reconciles.
func (o *options) holder(e term.Env, cfg manager.Config) datadir.Holder {
	host, _ := os.Hostname() // only informative
	out := datadir.Holder{
		PID: os.Getpid(), Host: host, Since: o.since, Version: buildinfo.Version(), ManagerOf: cfg.REST.Host, Command: o.command(e),
		Kubeconfig: o.kubeconfigFile(e), Context: cmp.Or(o.context, o.current), Diagnostics: o.diagnosticsPort(), Namespace: o.namespace, WatchFilter: cfg.WatchFilter,
	}
	if cfg.LeaderElection.Enabled {
		out.Lease = cfg.Lease().String()
	}
	return out
}

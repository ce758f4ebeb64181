package manager

import (
	"regexp"
	"time"

	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/controllers/cluster"
	"github.com/slipwayhq/slipway/internal/controllers/machine"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager"
)

// minConditionsGrace is the minimum of --remote-conditions-grace-period, as in Cluster API.
const minConditionsGrace = 2 * time.Minute

// nodeFlags holds the flags for workload clusters and their Nodes. They are flags of Cluster API's manager, so their
// names must not change. options.bind adds them, and options.complete applies them (manager.go).
type nodeFlags struct {
	labels, annotations              []string
	connectionGrace, conditionsGrace time.Duration
}

func (n *nodeFlags) bind(f *pflag.FlagSet) {
	f.StringSliceVar(&n.labels, "additional-sync-machine-labels", nil,
		"regular expressions for additional labels to sync from Machines to Nodes")
	f.StringSliceVar(&n.annotations, "additional-sync-machine-annotations", nil,
		"regular expressions for additional annotations to sync from Machines to Nodes")
	f.DurationVar(&n.connectionGrace, "remote-connection-grace-period", cluster.DefaultConnectionGrace,
		"how long a workload cluster may be unreachable before its Cluster reports it")
	f.DurationVar(&n.conditionsGrace, "remote-conditions-grace-period", machine.DefaultConditionsGrace,
		"how long conditions about Nodes retain their last value while a workload cluster is unreachable; at least 2m")
}

// complete applies the flags to the manager's configuration.
func (n *nodeFlags) complete(cfg *manager.Config) error {
	if n.conditionsGrace < minConditionsGrace || n.conditionsGrace <= n.connectionGrace {
		return fault.New(fault.Invalid, "InvalidFlag",
			"--remote-conditions-grace-period is %s: it must be at least %s and longer than --remote-connection-grace-period, which is %s",
			n.conditionsGrace, minConditionsGrace, n.connectionGrace)
	}
	var err error
	if cfg.Machines.SyncLabels, err = expressions("--additional-sync-machine-labels", n.labels); err != nil {
		return err
	}
	if cfg.Machines.SyncAnnotations, err = expressions("--additional-sync-machine-annotations", n.annotations); err != nil {
		return err
	}
	cfg.Machines.ConditionsGrace, cfg.ConnectionGrace = n.conditionsGrace, n.connectionGrace
	return nil
}

func expressions(flag string, texts []string) ([]*regexp.Regexp, error) {
	var out []*regexp.Regexp
	for _, text := range texts {
		e, err := regexp.Compile(text)
		if err != nil {
			return nil, fault.New(fault.Invalid, "InvalidFlag", "%s: %q is no regular expression", flag, text).From(err)
		}
		out = append(out, e)
	}
	return out, nil
}

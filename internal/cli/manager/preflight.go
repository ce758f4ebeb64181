package manager

import (
	"slices"

	"github.com/spf13/pflag"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/controllers/machineset"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager"
)

// preflight holds the flags for the preflight checks of MachineSets.
type preflight struct{ checks []string }

func (p *preflight) bind(f *pflag.FlagSet) {
	f.StringSliceVar(&p.checks, "machineset-preflight-checks", []string{string(clusterv1.MachineSetPreflightCheckAll)},
		"checks to make before a MachineSet makes or replaces Machines: ControlPlaneIsStable, ControlPlaneVersionSkew, "+
			"KubeadmVersionSkew, KubernetesVersionSkew, or All")
}

// complete applies the flags to the manager's configuration.
func (p *preflight) complete(cfg *manager.Config) error {
	known := append(machineset.Checks(), clusterv1.MachineSetPreflightCheckAll)
	for _, text := range p.checks {
		check := clusterv1.MachineSetPreflightCheck(text)
		if !slices.Contains(known, check) {
			return fault.New(fault.Invalid, "InvalidFlag", "--machineset-preflight-checks: there is no check %s", text)
		}
		cfg.MachineSets.Preflight = append(cfg.MachineSets.Preflight, check)
	}
	return nil
}

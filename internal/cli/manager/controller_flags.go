package manager

import (
	"slices"

	"github.com/spf13/pflag"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/controllers/machineset"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/internal/manager/crds"
)

// controllerFlags holds the flags that apply to all controllers. Apart from --tracing they are flags of Cluster API's
// manager, so their names must not change. options.bind adds them, and options.complete applies them (manager.go).
type controllerFlags struct {
	workload      manager.Workload
	skipMigration []string
	tracing       bool
}

func (m *controllerFlags) bind(f *pflag.FlagSet) {
	f.Float32Var(&m.workload.QPS, "clustercache-client-qps", 100, "maximum requests per second to one workload cluster")
	f.IntVar(&m.workload.Burst, "clustercache-client-burst", 200, "maximum burst of requests to one workload cluster")
	f.IntVar(&m.workload.Concurrency, "clustercache-concurrency", 100, "number of workload clusters to connect to or probe concurrently")
	f.StringSliceVar(&m.skipMigration, "skip-crd-migration-phases", nil,
		"phases of the storage migration to skip: StorageVersionMigration, CleanupManagedFields, or All")
	f.BoolVar(&m.tracing, "tracing", false, "send OpenTelemetry traces over OTLP (gRPC) to the endpoint of the environment variables OTEL_EXPORTER_OTLP_*")
}

// complete applies the flags to the manager's configuration.
func (m *controllerFlags) complete(cfg *manager.Config) error {
	var err error
	cfg.SkipMigration, err = crds.ParsePhases(m.skipMigration)
	cfg.Workload, cfg.Tracing = m.workload, m.tracing
	return err
}

// preflightFlags holds the flag for the preflight checks of MachineSets, which is a flag of Cluster API's manager.
// options.bind adds them, and options.complete applies them (manager.go).
type preflightFlags struct{ checks []string }

func (p *preflightFlags) bind(f *pflag.FlagSet) {
	f.StringSliceVar(&p.checks, "machineset-preflight-checks", []string{string(clusterv1.MachineSetPreflightCheckAll)},
		"checks before a MachineSet creates or replaces Machines: ControlPlaneIsStable, ControlPlaneVersionSkew, "+
			"KubeadmVersionSkew, KubernetesVersionSkew, or All")
}

// complete applies the flags to the manager's configuration.
func (p *preflightFlags) complete(cfg *manager.Config) error {
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

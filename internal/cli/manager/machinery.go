package manager

import (
	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/internal/manager/migration"
)

// machinery holds the flags that apply to all controllers.
type machinery struct {
	workload      manager.Workload
	skipMigration []string
	tracing       bool
}

func (m *machinery) bind(f *pflag.FlagSet) {
	f.Float32Var(&m.workload.QPS, "clustercache-client-qps", 100, "requests a second to one workload cluster")
	f.IntVar(&m.workload.Burst, "clustercache-client-burst", 200, "requests at once to one workload cluster")
	f.IntVar(&m.workload.Concurrency, "clustercache-concurrency", 100, "workload clusters to connect to or probe at once")
	f.StringSliceVar(&m.skipMigration, "skip-crd-migration-phases", nil,
		"phases of the migration of stored objects to leave out: StorageVersionMigration, CleanupManagedFields, or All")
	f.BoolVar(&m.tracing, "tracing", false, "send OpenTelemetry traces by OTLP (gRPC); where to is said by the variables OTEL_EXPORTER_OTLP_* of the environment")
}

// complete applies the flags to the manager's configuration.
func (m *machinery) complete(cfg *manager.Config) error {
	var err error
	cfg.SkipMigration, err = migration.ParsePhases(m.skipMigration)
	cfg.Workload, cfg.Tracing = m.workload, m.tracing
	return err
}

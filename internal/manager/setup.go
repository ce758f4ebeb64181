package manager

import (
	"fmt"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/slipwayhq/slipway/internal/heap"
	"github.com/slipwayhq/slipway/internal/hosted/addons"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/internal/providerset"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/internal/reconciler/reporting"
	"github.com/slipwayhq/slipway/internal/workload"
)

const (
	// statusInterval is the delay of status writes that are not urgent; see docs/decisions/0006-pacing.md.
	statusInterval = 2 * time.Second
	// reconcileInterval is the minimum interval between the starts of two reconciliations of an object.
	reconcileInterval = 100 * time.Millisecond
	// normalEvents and normalEventsAtOnce are the rate and burst of normal Events of all controllers
	// together. Warnings are not limited.
	normalEvents, normalEventsAtOnce = 2, 25
)

// Workload configures the requests to workload clusters. Zero fields use the defaults of package workload. The flags of
// `slipway manager` set it.
type Workload struct {
	// QPS and Burst limit the requests to one workload cluster.
	QPS   float32
	Burst int
	// Concurrency limits the clusters that are connected or probed at the same time.
	Concurrency int
}

// common returns the part of the setup that all controllers of the process share: all but the manager and the
// concurrency.
func (c Config) common(tracer trace.Tracer) (reconciler.Setup, error) {
	metrics, err := reporting.NewMetrics(ctrlmetrics.Registry)
	if err != nil {
		return reconciler.Setup{}, err
	}
	all, err := crds.All()
	if err != nil {
		return reconciler.Setup{}, err
	}
	common := reconciler.Setup{
		Limits: kube.NewStatusLimits(all), WatchFilter: c.WatchFilter, Metrics: metrics, Tracer: tracer, Work: c.Work,
		NormalEvents: rate.NewLimiter(normalEvents, normalEventsAtOnce), Writes: &kube.Writes{}, CreatedOwners: &ownership.CreatedOwners{},
	}
	if c.plans != nil {
		common.Plans = c.plans
	}
	if c.Gates.Enabled(providerset.GateReconcilerRateLimiting) {
		common.StatusInterval, common.ReconcileInterval = statusInterval, reconcileInterval
	}
	return common, nil
}

// addRemote adds the connections to workload clusters, which all controllers share, to the manager. newParts calls it.
func addRemote(mgr manager.Manager, cfg Config, metrics prometheus.Registerer) (*workload.Clusters, error) {
	self, err := workload.SelfFromEnvironment(os.Getenv, nil)
	if err != nil {
		return nil, err
	}
	clusters, err := workload.New(workload.Config{
		Management: mgr.GetClient(), Self: self, Registerer: metrics,
		QPS: cfg.Workload.QPS, Burst: cfg.Workload.Burst, Concurrency: cfg.Workload.Concurrency, Policy: cfg.Policy,
		Watched: addons.Watched(), Memory: heap.OwnLimit(), Crashes: cfg.Crashes, IsManagedAddress: workload.ManagedAddresses{Live: mgr.GetAPIReader()}.Include,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing connections to workload clusters: %w", err)
	}
	return clusters, clusters.SetupWithManager(mgr)
}

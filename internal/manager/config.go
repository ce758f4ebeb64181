package manager

import (
	"cmp"
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/config/rbac"
	"github.com/slipwayhq/slipway/internal/bundle"
	"github.com/slipwayhq/slipway/internal/controllers/machine"
	"github.com/slipwayhq/slipway/internal/controllers/machineset"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/hosted/statefulset"
	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane"
	"github.com/slipwayhq/slipway/internal/local/loadbalancer"
	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/internal/nodeimage/versions"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providerset"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/workload"
)

// namespace is the default namespace of the manager's own objects.
const namespace = rbac.Namespace

// Config configures the manager. The commands `slipway manager` and `slipway up` set it from their flags and
// configuration files. REST is required, and the zero values of all other fields are defaults.
type Config struct {
	// REST connects to the management cluster with the identity of the manager.
	REST *rest.Config
	// Identities are the connections of the providers whose controllers have a separate identity. The
	// controllers of other providers, the caches and all shared tasks use REST.
	Identities map[providerset.Name]*rest.Config
	// Home is the existing namespace of the manager's own objects: the lease, and the certificate and Service
	// of the webhooks. If empty, [namespace] is used and created if it is missing.
	Home string
	// Log receives the log of the controllers.
	Log logr.Logger
	// Namespaces that are watched. Empty means all.
	Namespaces []string
	// WatchFilter limits the controllers to objects with this value of the label
	// cluster.x-k8s.io/watch-filter.
	WatchFilter string
	// SyncPeriod is the interval at which every object is reconciled without an event. Default: 10 min.
	SyncPeriod time.Duration
	// Gates are the feature gates. Nil means the defaults.
	Gates featuregate.FeatureGate
	// Concurrency by controller name. The defaults are in package providerset.
	Concurrency map[string]int
	// LeaderElection is disabled by default.
	LeaderElection LeaderElection
	// Endpoints that the manager serves.
	Endpoints Endpoints
	// Webhook defines how the API server reaches the webhooks.
	Webhook Webhook
	// KubeadmControlPlanes are settings of the KubeadmControlPlane controller alone that are not feature
	// gates.
	KubeadmControlPlanes controlplane.Settings
	// BootstrapTokenTTL is the lifetime of a join token. Default: 15 min.
	BootstrapTokenTTL time.Duration
	// ConnectionGrace is how long a workload cluster may be unreachable before its Cluster reports it.
	// Default: 50 s.
	ConnectionGrace time.Duration
	// Machines are settings of the Machine controller. Feature gates override the fields that depend on them.
	Machines machine.Settings
	// MachineSets selects the preflight checks. A feature gate enables or disables all of them.
	MachineSets machineset.Settings
	// Workload configures the connections to workload clusters.
	Workload Workload
	// SkipMigration lists the phases of the storage migration that are skipped.
	SkipMigration []crds.Phase
	// Tracing exports OpenTelemetry traces, like OTEL_TRACES_EXPORTER=otlp in the environment. The other
	// OTEL_* environment variables configure the exporter.
	Tracing bool
	// SpanExporter replaces the OTLP exporter if set.
	SpanExporter sdktrace.SpanExporter
	// Extensions configures the calls of Runtime Extensions, if the feature gate RuntimeSDK is enabled.
	Extensions Extensions
	// Host describes the machine that runs containers of the Local provider and hosted control planes.
	Host Host
	// Policy restricts users who write objects, and selects the providers that run. Default:
	// [policy.Default].
	Policy policy.Configuration
	// Starting is called, if set, after all checks and before the first controller starts.
	Starting func()
	// Ready is called, if set, when the controllers wait for the CRDs of other providers, and when all controllers have
	// started. The second call is made on the leader only, as for Working.
	Ready func()
	// Working is called, if set, when all controllers run. With leader election, it is called on the leader
	// only.
	Working func()
	// Work, if set, is notified of the object that is being reconciled.
	Work reconciler.WorkTracker
	// Crashes, if set, records the workload cluster whose response is being decoded.
	Crashes workload.Crashes

	// plans stores the last plans of the controllers for the diagnostics endpoint.
	plans *PlanStore
}

// LeaderElection configures leader election between managers. [Run] passes it to controller-runtime.
type LeaderElection struct {
	Enabled bool
	// Durations. The defaults are 15 s, 10 s and 2 s.
	Lease, Renew, Retry time.Duration
}

// Endpoints are the addresses that the manager serves at. The value "0" disables an endpoint.
type Endpoints struct {
	// Health serves /healthz and /readyz. Default: ":9440".
	Health string
	// Diagnostics serves metrics and profiles. Default: ":8443".
	Diagnostics string
	// ClientCA is the client CA of the management cluster, in PEM. A user with a certificate of this CA can
	// read the plans of objects that they may get. If empty, only tokens authenticate.
	ClientCA []byte
	// CertFile and KeyFile are the serving certificate of the diagnostics endpoint, reloaded when they
	// change. If empty, the certificate is self-signed.
	CertFile, KeyFile string
	// Insecure serves diagnostics over HTTP without authentication.
	Insecure bool
	// Profiler serves pprof over HTTP. Empty disables it.
	Profiler string
	// Verbosity is the log level, which the diagnostics endpoint can change. If nil, the level is fixed.
	Verbosity *slog.LevelVar
	// TLS modifies the TLS configuration of diagnostics and webhooks.
	TLS []func(*tls.Config)
}

// Webhook configures the webhook server.
type Webhook struct {
	// Host and Port are the listen address. Port 0 means 9443.
	Host string
	Port int
	// Local makes the API server call the webhooks at https://Host:Port. Otherwise it calls them through the
	// Service in the manager's namespace.
	Local bool
	// Service in front of the managers that run the same providers. Default: slipway-webhook.
	Service string
	// CertDir contains tls.crt and tls.key of an externally managed certificate. If it is empty, the manager
	// creates and rotates its own certificate.
	CertDir, CertName, KeyName string
	// Caller is the common name of the API server's client certificate, which Endpoints.ClientCA must have
	// signed. If set, other clients are rejected.
	Caller string
}

// Host describes the machine that runs containers of the Local provider and hosted control planes.
type Host struct {
	// DataDir holds the data of hosted control planes, load balancers, snapshots and simulated clusters.
	DataDir string
	// TemporaryData means that DataDir is lost when the process ends, as in a Pod without a volume. In this
	// case, no processes of hosted control planes are started.
	TemporaryData bool
	// Instance distinguishes this management cluster from others on the same machine.
	Instance string
	// Executable is the program that is started for each hosted control plane and each load balancer.
	Executable string
	// Bundles is the folder with the bundles for hosts of the SSH provider. Empty: the folder bundles of DataDir.
	Bundles string
	// Pods configures hosted control planes that run as Pods. If its namespace is empty, they are processes
	// of this machine.
	Pods statefulset.Settings
}

// balancers returns the supervisor of the load balancer processes on the host, or nil if the host runs none.
// [addControllers] passes it to the Local provider.
func (h Host) balancers() *loadbalancer.Supervisor {
	if h.DataDir == "" || h.Executable == "" {
		return nil
	}
	return &loadbalancer.Supervisor{Root: datadir.Dir(h.DataDir).Balancers(), Command: []string{h.Executable, "load-balancer", "run", "--folder"}}
}

// bundles returns the store of the bundles for hosts. [addControllers] passes it to the SSH provider.
func (h Host) bundles() bundle.Store {
	return bundle.Store{Dir: cmp.Or(h.Bundles, datadir.Dir(h.DataDir).Bundles())}
}

func (c Config) home() string { return cmp.Or(c.Home, namespace) }

// Lease returns the key of the leader election lease. Commands read it to find the manager that runs.
func (c Config) Lease() client.ObjectKey {
	return client.ObjectKey{Namespace: c.home(), Name: c.lease()}
}

// lease returns the lease name shared by managers with the same providers, so that no provider runs in two managers. A
// manager with the core provider uses the name of the reference implementation.
func (c Config) lease() string {
	const name = "controller-leader-election-"
	if c.Policy.Runs(providerset.Core) {
		return name + "capi"
	}
	return name + string(c.Policy.Sets()[0].Name)
}

// releases returns the store of the Kubernetes versions that hosted control planes can run. The HostedControlPlane
// controller and the webhooks use it.
func (c Config) releases() versions.Store {
	return versions.LocalStore(datadir.Dir(c.Host.DataDir).Kubernetes())
}

// withDefaults returns the configuration with defaults for its zero fields. [Run], [AddPlanned] and [PlannedAdmission]
// call it first.
func (c Config) withDefaults() (Config, error) {
	if c.SyncPeriod == 0 {
		c.SyncPeriod = 10 * time.Minute
	}
	if c.BootstrapTokenTTL == 0 {
		c.BootstrapTokenTTL = 15 * time.Minute
	}
	if c.Endpoints.Health == "" {
		c.Endpoints.Health = ":9440"
	}
	if c.Endpoints.Diagnostics == "" {
		c.Endpoints.Diagnostics = ":8443"
	}
	if c.Webhook.Port == 0 {
		c.Webhook.Port = 9443
	}
	if c.Webhook.Service == "" {
		c.Webhook.Service = WebhookService
	}
	if c.Policy.Kind == "" { // a parsed policy has a kind
		c.Policy = policy.Default()
	}
	if c.Gates == nil {
		gates, err := providerset.NewGates()
		if err != nil {
			return c, err
		}
		c.Gates = gates
	}
	return c, c.checkGates()
}

// concurrency returns the number of concurrent reconciliations of a controller.
func (c Config) concurrency(set providerset.Set, controller string) int {
	if n := c.Concurrency[controller]; n > 0 {
		return n
	}
	return set.Controllers[controller]
}

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
	"github.com/slipwayhq/slipway/internal/balancer"
	"github.com/slipwayhq/slipway/internal/controllers/machine"
	"github.com/slipwayhq/slipway/internal/controllers/machineset"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/manager/migration"
	"github.com/slipwayhq/slipway/internal/manager/plans"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providers/hosted/backend/statefulset"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane"
	"github.com/slipwayhq/slipway/internal/providerset"
	"github.com/slipwayhq/slipway/internal/releases"
	"github.com/slipwayhq/slipway/internal/remote"
)

// Namespace of the manager's own objects where nothing else is said.
const Namespace = rbac.Namespace

// Config says how to run the manager. REST is required; the zero value of everything else is the default.
type Config struct {
	// REST is how to reach the management cluster, with the manager's own identity.
	REST *rest.Config
	// Identities are how the controllers of a provider reach the management cluster where they have an identity of their
	// own; the others use REST, as the caches do and what the process does for all of them.
	Identities map[providerset.Name]*rest.Config
	// Home is the namespace of the manager's own objects: lease, and certificate and Service of the webhooks. It must exist.
	// Empty: [Namespace], which is created where it is missing.
	Home string
	// Log receives what the controllers say.
	Log logr.Logger
	// Namespaces to watch; none: all.
	Namespaces []string
	// WatchFilter limits the controllers to objects labelled cluster.x-k8s.io/watch-filter with it.
	WatchFilter string
	// SyncPeriod is how often every object is reconciled without an event. Default 10 min.
	SyncPeriod time.Duration
	// Gates are the feature gates; nil: the defaults.
	Gates featuregate.FeatureGate
	// Concurrency by controller name; missing ones run with what package providerset says.
	Concurrency map[string]int
	// LeaderElection, off by default.
	LeaderElection LeaderElection
	// Endpoints that the manager itself serves.
	Endpoints Endpoints
	// Webhook says where the API server finds the webhooks.
	Webhook Webhook
	// KubeadmControlPlanes are the settings of their controller that are neither gates nor those of others.
	KubeadmControlPlanes controlplane.Settings
	// BootstrapTokenTTL is how long a join token lives. Default 15 min.
	BootstrapTokenTTL time.Duration
	// ConnectionGrace is how long a workload cluster may be silent until its Cluster says so. Default 50 s.
	ConnectionGrace time.Duration
	// Machines is how the Machine controller deals with Nodes. What depends on gates is set by them.
	Machines machine.Settings
	// MachineSets says which preflight checks are made. Whether any are is set by their gate.
	MachineSets machineset.Settings
	// Workload says how to talk to workload clusters.
	Workload Workload
	// SkipMigration names phases of the migration of stored objects to leave out.
	SkipMigration []migration.Phase
	// Tracing sends OpenTelemetry traces, as OTEL_TRACES_EXPORTER=otlp in the environment does. Where to is said by the
	// other variables OTEL_* there.
	Tracing bool
	// SpanExporter, where set, receives the traces instead.
	SpanExporter sdktrace.SpanExporter
	// Extensions says how Runtime Extensions are called, where the gate RuntimeSDK is on.
	Extensions Extensions
	// Host is the machine that the Local provider and the hosted control planes use.
	Host Host
	// Policy is what the operator allows those who write objects, and which providers run. Default: [policy.Default].
	Policy policy.Configuration
	// Starting, where set, is called when everything has been checked, before the first controller starts.
	Starting func()
	// Ready, where set, is called once all controllers have started, or wait for the CRDs of other providers.
	Ready func()
	// Working, where set, is called once all controllers run: where managers elect one that works, once this one is elected.
	Working func()
	// Work, where set, is told what is being reconciled.
	Work loop.Work
	// Crashes, where set, records of which workload cluster an answer is being decoded.
	Crashes remote.Crashes

	// plans are what diagnostics serve of the controllers.
	plans *plans.Store
}

// LeaderElection says whether and how managers elect one that works.
type LeaderElection struct {
	Enabled bool
	// Durations; zero: 15 s, 10 s, 2 s.
	Lease, Renew, Retry time.Duration
}

// Endpoints are the addresses the manager serves at. "0" turns one off.
type Endpoints struct {
	// Health serves /healthz and /readyz. Default :9440.
	Health string
	// Diagnostics serves metrics and profiles. Default :8443.
	Diagnostics string
	// ClientCA is the authority, as PEM, whose client certificates the management cluster accepts: who has one may read
	// the plans of the objects that they may get. Empty: tokens only.
	ClientCA []byte
	// CertFile and KeyFile are the certificate of diagnostics, read again when they change; empty: a self-signed one.
	CertFile, KeyFile string
	// Insecure serves diagnostics in plain HTTP without authentication.
	Insecure bool
	// Profiler serves pprof in plain HTTP; empty: off.
	Profiler string
	// Verbosity is the level of the log, changed through diagnostics; nil: it cannot be.
	Verbosity *slog.LevelVar
	// TLS changes how diagnostics and webhooks are served.
	TLS []func(*tls.Config)
}

// Webhook says how webhooks are served.
type Webhook struct {
	// Host and Port to listen at. Port 0: 9443.
	Host string
	Port int
	// Local webhooks are reached by the API server at https://Host:Port, else through the Service in the manager's
	// namespace.
	Local bool
	// Service in front of the managers that run the same providers. Default: slipway-webhook.
	Service string
	// CertDir, where set, holds tls.crt and tls.key made by someone else; by default the manager makes and
	// rotates its own certificate.
	CertDir, CertName, KeyName string
	// Caller, where set, is the common name of the API server's client certificate, of Endpoints.ClientCA: nobody else is served.
	Caller string
}

// Host is what the Local provider and the hosted control planes need of the machine they run on.
type Host struct {
	// DataDir holds the data of hosted control planes.
	DataDir string
	// TemporaryData: DataDir is lost with the process, as in a Pod without a volume. No process of a hosted control plane is started there.
	TemporaryData bool
	// Instance names this management cluster among others on the machine.
	Instance string
	// Executable is started for every hosted control plane.
	Executable string
	// Pods says how hosted control planes run as Pods; without a namespace they are processes of this machine.
	Pods statefulset.Settings
}

// balancers keeps the load balancers on the host; nil: nothing is kept there.
func (h Host) balancers() *balancer.Keeper {
	if h.DataDir == "" || h.Executable == "" {
		return nil
	}
	return &balancer.Keeper{Root: datadir.Dir(h.DataDir).Balancers(), Command: []string{h.Executable, "load-balancer", "run", "--folder"}}
}

func (c Config) home() string { return cmp.Or(c.Home, Namespace) }

// Lease is what managers of the same providers compete for where they elect a leader.
func (c Config) Lease() client.ObjectKey {
	return client.ObjectKey{Namespace: c.home(), Name: c.lease()}
}

// lease is the name of the lease that managers of the same providers compete for: no provider runs in two managers, and the core
// has the name that the reference implementation's core has.
func (c Config) lease() string {
	const name = "controller-leader-election-"
	if c.Policy.Runs(providerset.Core) {
		return name + "capi"
	}
	return name + string(c.Policy.Sets()[0].Name)
}

// releases are the Kubernetes versions that control planes on the host can run.
func (c Config) releases() releases.Store {
	return releases.Local(datadir.Dir(c.Host.DataDir).Kubernetes())
}

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
	if c.Policy.Kind == "" { // one that was parsed has it
		c.Policy = policy.Default()
	}
	if c.Gates == nil {
		gates, err := NewGates()
		if err != nil {
			return c, err
		}
		c.Gates = gates
	}
	return c, c.checkGates()
}

// concurrency is how many objects of its kind a controller reconciles at once.
func (c Config) concurrency(set providerset.Set, controller string) int {
	if n := c.Concurrency[controller]; n > 0 {
		return n
	}
	return set.Controllers[controller]
}

package manager

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/manager/webhook"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// stopTimeout limits how long running reconciliations may take after the manager is stopped.
const stopTimeout = 10 * time.Second

// syncTimeout limits the initial sync of the caches of a controller. On a busy host, the sync takes much
// longer than the default limit of two minutes.
const syncTimeout = 15 * time.Minute

// Run runs all controllers and webhooks until ctx ends. `slipway manager` and the manager process of `slipway up` call
// it once. The management cluster must have been prepared with [Install] or with the manifests of a release.
func Run(ctx context.Context, cfg Config) error { return explainMissingKind(start(ctx, cfg)) }

// start installs the CRDs before it creates the manager, whose cache needs their kinds.
func start(ctx context.Context, cfg Config) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	cfg.REST = rest.CopyConfig(cfg.REST)
	if cfg.Endpoints.servePlans() {
		cfg.plans = &PlanStore{}
	}
	cfg.REST.WarningHandler = rest.NoWarnings{} // the warnings are about names in the API of Cluster API
	if err := checkServer(cfg); err != nil {
		return err
	}
	certificates, err := prepareWebhooks(ctx, cfg)
	if err != nil {
		return fmt.Errorf("preparing webhooks: %w", err)
	}
	scheme, err := NewScheme()
	if err != nil {
		return err
	}
	election := rest.CopyConfig(cfg.REST) // lease renewals are not queued behind other writes
	cfg.limitWrites()
	measured, err := newInformers(scheme, ctrlmetrics.Registry)
	if err != nil {
		return err
	}
	defer measured.release()
	mgr, err := newManager(cfg, election, measured, certificates)
	if err != nil {
		return err
	}
	if err := addWebhooks(mgr, cfg, certificates); err != nil {
		return fmt.Errorf("adding webhooks: %w", err)
	}
	if err := awaitWatched(ctx, mgr, cfg); err != nil {
		return err
	}
	if err := addControllers(ctx, mgr, cfg); err != nil {
		return fmt.Errorf("adding controllers: %w", err)
	}
	if err := addHealth(mgr); err != nil {
		return err
	}
	if err := mgr.Add(afterCaches{mgr: mgr, ready: cfg.becameReady}); err != nil {
		return err
	}
	if cfg.Starting != nil {
		cfg.Starting()
	}
	return mgr.Start(ctx)
}

// newManager creates the manager without controllers. start calls it.
func newManager(cfg Config, election *rest.Config, measured *informers, certificates *webhook.Certificates) (manager.Manager, error) {
	caching, err := cacheOptions(cfg)
	if err != nil {
		return nil, err
	}
	ours, err := newRelay(measured.scheme, cfg.relayed()...)
	if err != nil {
		return nil, err
	}
	caching.NewInformer = measured.new
	if len(cfg.Namespaces) == 0 { // otherwise there is one informer for each namespace
		caching.NewInformer = ours.wrap(measured.new)
	}
	stop, unique, priorities := stopTimeout, true, cfg.Gates.Enabled(providerset.GatePriorityQueue)
	mgr, err := ctrl.NewManager(cfg.REST, ctrl.Options{
		Scheme: measured.scheme, Logger: cfg.Log, Cache: caching, Client: clientOptions(),
		Metrics: diagnostics(cfg.Endpoints, cfg.plans), HealthProbeBindAddress: cfg.Endpoints.Health, PprofBindAddress: cfg.Endpoints.Profiler,
		WebhookServer:  webhookServer(cfg, certificates),
		LeaderElection: cfg.LeaderElection.Enabled, LeaderElectionID: cfg.lease(), LeaderElectionNamespace: cfg.home(),
		LeaseDuration: duration(cfg.LeaderElection.Lease, 15*time.Second), RenewDeadline: duration(cfg.LeaderElection.Renew, 10*time.Second),
		RetryPeriod: duration(cfg.LeaderElection.Retry, 2*time.Second), LeaderElectionReleaseOnCancel: true, LeaderElectionConfig: election,
		GracefulShutdownTimeout: &stop,
		Controller:              ctrlconfig.Controller{SkipNameValidation: &unique, UsePriorityQueue: &priorities, CacheSyncTimeout: syncTimeout},
	})
	if err != nil {
		return nil, err
	}
	ours.setSource(mgr.GetCache())
	return mgr, nil
}

// relayed returns the kinds that the core provider watches through contracts and an enabled provider watches
// with Go types, without templates; see [relay].
func (c Config) relayed() []client.Object {
	var out []client.Object
	for set, kinds := range map[providerset.Name][]client.Object{
		providerset.BootstrapKubeadm:    {&bootstrapv1.KubeadmConfig{}},
		providerset.ControlPlaneKubeadm: {&controlplanev1.KubeadmControlPlane{}},
		providerset.ControlPlaneHosted:  {&hostedv1.HostedControlPlane{}},
		providerset.InfrastructureLocal: {&infrav1.LocalCluster{}, &infrav1.LocalMachine{}, &infrav1.LocalMachinePool{}},
		providerset.InfrastructureSSH:   {&infrav1.SSHCluster{}, &infrav1.SSHMachine{}},
	} {
		if c.Policy.Runs(set) {
			out = append(out, kinds...)
		}
	}
	return out
}

func duration(d, otherwise time.Duration) *time.Duration {
	if d == 0 {
		d = otherwise
	}
	return &d
}

// cacheOptions limits what the cache stores: Secrets and ConfigMaps with a cluster label, only the managed
// fields of Slipway, and with a watch filter only labelled objects of the core kinds.
func cacheOptions(cfg Config) (cache.Options, error) {
	ofClusters, err := labels.NewRequirement(clusterv1.ClusterNameLabel, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, err
	}
	labelled := cache.ByObject{Label: labels.NewSelector().Add(*ofClusters)}
	options := cache.Options{
		SyncPeriod: &cfg.SyncPeriod, DefaultTransform: kube.PruneManagedFields,
		ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: labelled, &corev1.ConfigMap{}: labelled},
	}
	if cfg.WatchFilter != "" {
		mine, err := labels.NewRequirement(clusterv1.WatchLabel, selection.Equals, []string{cfg.WatchFilter})
		if err != nil {
			return cache.Options{}, fault.New(fault.Invalid, "InvalidWatchFilter",
				"--watch-filter %q is no value that a label can have: up to 63 letters, digits, \"-\", \"_\" and \".\"", cfg.WatchFilter).From(err)
		}
		for _, kind := range watchFilterKinds() {
			options.ByObject[kind] = cache.ByObject{Label: labels.NewSelector().Add(*mine)}
		}
	}
	for _, ns := range cfg.Namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[ns] = cache.Config{}
	}
	return options, nil
}

// watchFilterKinds returns the kinds to which the watch filter applies. Provider objects are not filtered, because the
// objects that reference them are.
func watchFilterKinds() []client.Object {
	return []client.Object{
		&clusterv1.Cluster{}, &clusterv1.Machine{}, &clusterv1.MachineSet{}, &clusterv1.MachineDeployment{}, &clusterv1.MachinePool{},
		&clusterv1.MachineHealthCheck{}, &addonsv1.ClusterResourceSet{},
	}
}

// clientOptions makes the client read provider objects from the cache, and Secrets and ConfigMaps from the
// API server, because the cache only contains some of them. Field validation is disabled because its warnings
// are discarded, and an apply with an unknown field fails in any case.
func clientOptions() client.Options {
	return client.Options{
		FieldValidation: metav1.FieldValidationIgnore,
		Cache: &client.CacheOptions{
			Unstructured: true, DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}},
		},
	}
}

func addHealth(mgr manager.Manager) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("webhooks", mgr.GetWebhookServer().StartedChecker())
}

// becameReady logs that the manager is ready, and notifies the program that started it.
func (c Config) becameReady() {
	c.Log.Info("ready: webhooks and controllers are running")
	for _, tell := range []func(){c.Ready, c.Working} {
		if tell != nil {
			tell()
		}
	}
}

// afterCaches is a runnable that calls ready when the caches are synced, which is when the controllers start. Like
// them, it waits for leadership, because it does not implement NeedLeaderElection.
type afterCaches struct {
	mgr   manager.Manager
	ready func()
}

func (a afterCaches) Start(ctx context.Context) error {
	if a.mgr.GetCache().WaitForCacheSync(ctx) {
		a.ready()
	}
	<-ctx.Done()
	return nil
}

package manager

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/slipwayhq/slipway/internal/cli/provider"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/heap"
	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// options holds the flag values of the manager command. Command creates it, bind and complete convert the flags, and
// run starts the manager. The methods for the data directory are in datadir.go.
type options struct {
	config              manager.Config
	gates               featuregate.MutableFeatureGate
	kubeconfig, context string
	namespace           string
	dataDir             string
	minTLS              string
	ciphers             []string
	curves              []int32
	qps                 float32
	burst               int
	logging             loggingFlags
	concurrency         map[string]*int
	contentionProfiling bool
	detach              bool
	nodes               nodeFlags
	machinery           controllerFlags
	preflight           preflightFlags
	pods                podFlags
	configuration       provider.PolicyFlags
	providers           providerFlags
	// current is the current context at the start, which may change later.
	current string
	// since is the start time.
	since time.Time
	// given contains the names of the flags on the command line, and set the flags themselves.
	given []string
	set   []*pflag.Flag
}

// Command returns the manager command, for package cli.
func Command(e term.Env) *cobra.Command {
	o := &options{concurrency: map[string]*int{}}
	cmd := &cobra.Command{
		Use:   "manager",
		Short: "Run the controllers against any Kubernetes cluster",
		Long: `Run the controllers and webhooks of all providers, or only of the providers in --providers, against
the cluster of a kubeconfig or the cluster that this process runs in. "slipway up" runs the same
controllers and webhooks on its own management cluster.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.providers.print {
				return o.providers.printRoles(e, &o.configuration, o.pods.on)
			}
			if o.configuration.Print {
				return o.configuration.PrintTo(e.Out)
			}
			cmd.Flags().Visit(func(f *pflag.Flag) { o.given, o.set = append(o.given, f.Name), append(o.set, f) })
			return o.run(cmd.Context(), e)
		},
	}
	gates, err := providerset.NewGates()
	if err != nil { // the gates are constants of the program
		panic(err)
	}
	o.gates = gates
	o.bind(cmd.Flags())
	return cmd
}

// bind adds the flags. Existing Deployments pass the flags of Cluster API's managers, so those names and meanings must
// not change.
func (o *options) bind(f *pflag.FlagSet) {
	f.SetNormalizeFunc(cliflag.WordSepNormalizeFunc) // kube_api_qps is equivalent to kube-api-qps, as in every Kubernetes component
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the management cluster (default: $KUBECONFIG, else the cluster that this process runs in)")
	f.StringVar(&o.context, "kubeconfig-context", "", "context to use in the kubeconfig (default: its current context)")
	f.StringVar(&o.namespace, "namespace", "", "watch only this namespace (default: all)")
	f.StringVar(&o.config.Home, "manager-namespace", "", "existing namespace of the manager's own objects: the lease, and the certificate and Service of the webhooks (default: $POD_NAMESPACE, else slipway-system)")
	f.StringVar(&o.config.WatchFilter, "watch-filter", "", "process only objects whose label cluster.x-k8s.io/watch-filter has this value")
	f.StringVar(&o.dataDir, "data-dir", "", "directory for the data of hosted control planes (default: $XDG_DATA_HOME/slipway or ~/.local/share/slipway)")
	f.StringVar(&o.config.Host.Bundles, "bundles", "", "folder with the bundles for hosts of the SSH provider (slipway bundle); default: the folder bundles of the data directory")
	f.BoolVar(&o.config.Host.TemporaryData, "temporary-data", false, "the data directory is lost with this process, as in a Pod without a volume; hosted control planes are rejected unless they run as Pods")
	f.DurationVar(&o.config.SyncPeriod, "sync-period", 10*time.Minute, "interval at which every object is reconciled without an event")
	f.DurationVar(&o.config.BootstrapTokenTTL, "bootstrap-token-ttl", 15*time.Minute, "lifetime of a join token")
	f.DurationVar(&o.config.KubeadmControlPlanes.Etcd.Dial, "etcd-dial-timeout-duration", 10*time.Second, "timeout of a connection to an etcd member of a workload cluster")
	f.DurationVar(&o.config.KubeadmControlPlanes.Etcd.Call, "etcd-call-timeout-duration", 15*time.Second, "timeout of a call to an etcd member of a workload cluster")
	f.BoolVar(&o.config.LeaderElection.Enabled, "leader-elect", false, "elect one of several managers as the active manager")
	f.DurationVar(&o.config.LeaderElection.Lease, "leader-elect-lease-duration", 15*time.Second, "duration of the leader lease without a renewal")
	f.DurationVar(&o.config.LeaderElection.Renew, "leader-elect-renew-deadline", 10*time.Second, "how long the leader retries a renewal before it gives up")
	f.DurationVar(&o.config.LeaderElection.Retry, "leader-elect-retry-period", 2*time.Second, "interval at which other managers try to become the leader")
	f.Float32Var(&o.qps, "kube-api-qps", 100, "maximum requests per second to the management cluster")
	f.IntVar(&o.burst, "kube-api-burst", 200, "maximum burst of requests to the management cluster")
	f.StringVar(&o.config.Endpoints.Health, "health-addr", ":9440", "address that serves /healthz and /readyz; 0: disabled")
	f.StringVar(&o.config.Endpoints.Diagnostics, "diagnostics-address", ":8443", "address that serves metrics and profiles; 0: disabled")
	f.BoolVar(&o.config.Endpoints.Insecure, "insecure-diagnostics", false, "serve diagnostics over plain HTTP without authentication")
	f.StringVar(&o.config.Endpoints.CertFile, "diagnostics-cert-file", "", "certificate file for diagnostics, reloaded when it changes (default: a self-signed certificate, which clients cannot verify)")
	f.StringVar(&o.config.Endpoints.KeyFile, "diagnostics-key-file", "", "private key file of the diagnostics certificate")
	f.StringVar(&o.config.Endpoints.Profiler, "profiler-address", "", "address that serves pprof over plain HTTP; empty: disabled")
	f.BoolVar(&o.contentionProfiling, "contention-profiling", false, "enable contention profiling")
	f.StringVar(&o.config.Webhook.Host, "webhook-host", "", "address of this machine at which the API server reaches the webhooks (default: use the Service of --webhook-service)")
	f.StringVar(&o.config.Webhook.Service, "webhook-service", manager.WebhookService, "Service in the manager's namespace through which the API server reaches the webhooks; managers of different providers need different Services")
	f.IntVar(&o.config.Webhook.Port, "webhook-port", 9443, "port of the webhooks")
	f.StringVar(&o.config.Webhook.CertDir, "webhook-cert-dir", "", "directory with an external certificate for the webhooks (default: the manager issues and renews a certificate itself)")
	f.StringVar(&o.config.Webhook.CertName, "webhook-cert-name", "tls.crt", "file name of the certificate in --webhook-cert-dir")
	f.StringVar(&o.config.Webhook.KeyName, "webhook-key-name", "tls.key", "file name of the private key in --webhook-cert-dir")
	f.StringVar(&o.config.Extensions.CertFile, "runtime-extension-client-cert-file", "", "client certificate file for Runtime Extensions, reloaded when it changes (default: none)")
	f.StringVar(&o.config.Extensions.KeyFile, "runtime-extension-client-key-file", "", "private key file of the client certificate for Runtime Extensions")
	f.BoolVar(&o.config.Extensions.ReadOnly, "runtime-extension-read-only", false, "use the handlers of Runtime Extensions that another manager of this management cluster discovered, and do not update ExtensionConfigs")
	f.StringVar(&o.minTLS, "tls-min-version", "VersionTLS12", "minimum TLS version: VersionTLS12 or VersionTLS13")
	f.StringSliceVar(&o.ciphers, "tls-cipher-suites", nil, "cipher suites for TLS 1.2 (default: the defaults of Go)")
	f.Int32SliceVar(&o.curves, "tls-curve-preferences", nil, "key exchange mechanisms, as numbers of Go's tls.CurveID in any order (default: the defaults of Go)")
	f.BoolVarP(&o.detach, "detach", "d", false, "not supported; see \"slipway up\"")
	_ = f.MarkHidden("detach")
	o.logging.bind(f)
	o.nodes.bind(f)
	o.machinery.bind(f)
	o.preflight.bind(f)
	o.pods.bind(f)
	o.configuration.Bind(f)
	o.providers.bind(f)
	bindAccepted(f)
	o.gates.AddFlag(f)
	for _, set := range providerset.All() {
		for name, n := range set.Controllers {
			o.concurrency[name] = f.Int(name+"-concurrency", n, "maximum concurrent reconciles of controller "+name)
		}
	}
}

// run checks that the manager can start without a conflict, in the order of the package documentation, and runs it.
func (o *options) run(ctx context.Context, e term.Env) error {
	if o.detach {
		return fault.New(fault.Invalid, "Usage", "\"slipway manager\" runs in the foreground, as a service or a Pod has it; a shell has & for that, and \"slipway down --data-dir DIR\" ends it")
	}
	cfg, err := o.complete(e)
	if err != nil {
		return o.addLastCommand(e, err)
	}
	if err := o.checkDirectory(e, cfg.REST.Host); err != nil {
		return err
	}
	if err := checkOtherManager(ctx, cfg); err != nil {
		return err
	}
	if err := checkPorts(ctx, cfg); err != nil {
		return err
	}
	dir, disown, err := o.open(e, cfg)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // the lock ends with the process
	cfg.Working = func() {
		holder := o.holder(e, cfg)
		holder.Working = true
		_ = dir.UpdateHolder(holder) // only for "slipway status"
	}
	started := false
	cfg.Starting = func() { started = true }
	defer func() {
		if !started {
			disown()
		}
	}()
	cfg.Host.DataDir, cfg.Host.Instance = string(dir.Dir), dir.Instance
	if cfg.Host.Executable, err = e.Executable(); err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	for flag, set := range ineffective(o.given, cfg.Policy) {
		cfg.Log.Info("ignoring a flag, because its provider does not run", "flag", "--"+flag, "provider", set)
	}
	cfg.Endpoints.ClientCA = clientAuthority(ctx, cfg)
	ctrl.SetLogger(cfg.Log)
	klog.SetLogger(cfg.Log)
	heap.Collect(heap.Manager())
	if err := checkReachable(cfg.REST); err != nil {
		return err
	}
	return addRightsHint(retryUntilReachable(ctx, cfg.Log, func() error {
		err := portTaken(manager.Run(ctx, cfg), cfg)
		if started {
			return managerResult{err}
		}
		return err
	}))
}

// complete converts the flags to the manager's configuration.
func (o *options) complete(e term.Env) (manager.Config, error) {
	cfg := o.config
	var err error
	if cfg.Policy, err = o.providers.read(&o.configuration); err != nil {
		return cfg, err
	}
	access, err := o.access(e)
	if err != nil {
		return cfg, err
	}
	access.QPS, access.Burst = o.qps, o.burst
	cfg.Home = cmp.Or(cfg.Home, e.Getenv("POD_NAMESPACE"))
	cfg.REST, cfg.Gates = access, o.gates
	if err := o.logging.complete(e, &cfg); err != nil {
		return cfg, err
	}
	cfg.Webhook.Local = cfg.Webhook.Host != ""
	if o.namespace != "" {
		cfg.Namespaces = []string{o.namespace}
	}
	cfg.Concurrency = map[string]int{}
	for name, n := range o.concurrency {
		cfg.Concurrency[name] = *n
	}
	if cfg.Endpoints.TLS, err = o.tls(); err != nil {
		return cfg, err
	}
	if err := o.nodes.complete(&cfg); err != nil {
		return cfg, err
	}
	if err := o.preflight.complete(&cfg); err != nil {
		return cfg, err
	}
	if err := o.pods.complete(e, &cfg); err != nil {
		return cfg, err
	}
	return cfg, o.machinery.complete(&cfg)
}

// access returns the client configuration of the management cluster.
func (o *options) access(e term.Env) (*rest.Config, error) {
	rules, path := &clientcmd.ClientConfigLoadingRules{ExplicitPath: o.kubeconfig}, o.kubeconfig
	if path == "" {
		path = e.Getenv("KUBECONFIG")
		rules.Precedence = filepath.SplitList(path)
	}
	if path == "" {
		access, err := rest.InClusterConfig()
		if err != nil {
			return nil, fault.New(fault.Invalid, reasonNoCluster,
				"no management cluster: set --kubeconfig or KUBECONFIG, or run in a Pod").From(err)
		}
		return access, nil
	}
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.context})
	access, err := loaded.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, fault.New(fault.Invalid, "KubeconfigInvalid", "the kubeconfig %s selects no cluster, or is empty: use another one", path).From(err)
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "KubeconfigInvalid", "the kubeconfig %s cannot be used: %v", path, err).From(err)
	}
	if raw, err := loaded.RawConfig(); err == nil {
		o.current = raw.CurrentContext
	}
	return access, nil
}

// tls returns the TLS options of the servers.
func (o *options) tls() ([]func(*tls.Config), error) {
	version, err := cliflag.TLSVersion(o.minTLS)
	if err != nil {
		return nil, fault.New(fault.Invalid, "InvalidFlag", "--tls-min-version").From(err)
	}
	suites, err := cliflag.TLSCipherSuites(o.ciphers)
	if err != nil {
		return nil, fault.New(fault.Invalid, "InvalidFlag", "--tls-cipher-suites").From(err)
	}
	curves, err := cliflag.TLSCurvePreferences(o.curves)
	if err != nil {
		return nil, fault.New(fault.Invalid, "InvalidFlag", "--tls-curve-preferences").From(err)
	}
	return []func(*tls.Config){func(c *tls.Config) {
		c.MinVersion, c.CurvePreferences = version, curves
		if len(suites) > 0 {
			c.CipherSuites = suites
		}
	}}, nil
}

package controlplane

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	etcdversion "go.etcd.io/etcd/api/v3/version"
	encryptionconfig "k8s.io/apiserver/pkg/server/options/encryptionconfig/controller"
	"k8s.io/client-go/rest"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/controlplane/componentconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/components"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/etcd"
	"github.com/slipwayhq/slipway/internal/controlplane/secretencryption"
	"github.com/slipwayhq/slipway/internal/heap"
)

// DefaultListen is the default address of the management cluster's API server.
const DefaultListen = "127.0.0.1:6440"

// encryptionReload is the interval at which kube-apiserver checks for new encryption keys.
const encryptionReload = 2 * time.Second

// ManagementConfig configures a management cluster. `slipway up` sets it from its flags and its configuration file.
type ManagementConfig struct {
	Dir    datadir.Dir // held by the caller
	Listen string      // ADDRESS:PORT with a loopback address; default DefaultListen; port 0 selects a free port
	// Addresses are further addresses of this host to listen at, on the same port. Names are further names
	// for the serving certificate.
	Addresses []string
	Names     []string
	Now       func() time.Time `json:"-"` // clock of certificates; default time.Now
	// Providers lists the providers that get a separate identity: the manager's user name, a colon and the name of the
	// provider.
	Providers []string
	// Progress is the interval between bookmarks of idle watches. 0 means one minute.
	Progress time.Duration
	// Profiling serves profiles of the process to administrators.
	Profiling bool
	// EncryptSecrets encrypts Secrets in etcd. If it is disabled later, encrypted Secrets are rewritten as
	// plain text.
	EncryptSecrets bool
	// Audit enables the audit log in the log directory. Nil disables it.
	Audit *hostedv1.Audit
	// Authentication lists trusted token issuers. Nil means none.
	Authentication *hostedv1.Authentication
	// Waiting is called repeatedly during a long start with the reason why the API server is not ready. If
	// nil, the reason is logged.
	Waiting func(reason string) `json:"-"`
	// HideSecrets removes access to Secrets from the roles "edit" and "admin".
	HideSecrets bool
	// Nodes is set if the cluster has nodes.
	Nodes *Nodes
}

// Management is a running management cluster. `slipway up` stops it when it ends.
type Management struct {
	Server string // https URL
	// Root is a client configuration of group system:masters that is valid while the cluster runs.
	Root  *rest.Config
	group *components.Group
	ready <-chan struct{}
}

// StartManagement starts the management cluster and returns when its API server serves Root. `slipway up` calls it, and
// so does the hidden command "plane run" for tests. Ready waits until the cluster serves all users. It runs until ctx
// ends, Stop is called, or one of its components fails.
func StartManagement(ctx context.Context, cfg ManagementConfig) (*Management, error) {
	m, err := newManagement(ctx, cfg)
	if err != nil {
		return nil, err
	}
	g := components.NewGroup(ctx)
	root, err := m.start(g)
	if err != nil {
		return nil, cmp.Or(g.Abort(err), ctx.Err(), err)
	}
	ready := make(chan struct{})
	m.finish(g, root, func() { close(ready) })
	return &Management{Server: m.pki.server, Root: jsonConfig(root), group: g, ready: ready}, nil
}

// jsonConfig returns a loopback configuration for clients of all kinds, because custom resources do not
// support Protobuf.
func jsonConfig(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.ContentType, c.AcceptContentTypes = "", ""
	c.QPS = -1
	return c
}

// Ready waits until the API server is ready, including its default roles. `slipway up` calls it before it reports that
// the cluster is ready.
func (m *Management) Ready(ctx context.Context) error {
	select {
	case <-m.ready:
		return nil
	case <-m.Done():
		return m.Stop()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Done is closed when the management cluster has stopped.
func (m *Management) Done() <-chan struct{} { return m.group.Done() }

// Stop stops all components in order and returns the error that ended them, or nil for a requested stop.
func (m *Management) Stop() error { return m.group.Stop() }

// management is a management cluster that is being started. [StartManagement] fills it step by step.
type management struct {
	cfg               ManagementConfig
	listener          net.Listener
	pki               managementPKI
	server            *components.APIServer
	controllerManager *components.ControllerManager
	scheduler         *components.Scheduler      // nil without nodes
	secretRewriter    *secretencryption.Rewriter // nil if Secrets are plain text and never were encrypted
	memory            int64                      // of the host or of the control group, in bytes
}

func newManagement(ctx context.Context, cfg ManagementConfig) (*management, error) {
	if cfg.Listen == "" {
		cfg.Listen = DefaultListen
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	now := datadir.Versions{Slipway: buildinfo.Version(), Kubernetes: buildinfo.Kubernetes(), Etcd: etcdversion.Version}
	if err := datadir.RecordVersions(cfg.Dir, now); err != nil {
		return nil, err
	}
	l, err := listenLoopback(ctx, cfg.Listen)
	if err != nil {
		return nil, err
	}
	half, err := heap.DefaultLimit()
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	m := &management{cfg: cfg, listener: l, pki: newManagementPKI(cfg, l.Addr().(*net.TCPAddr)), memory: 2 * half}
	if err := m.pki.ensure(); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("prepare certificates: %w", err)
	}
	everywhere, err := listenElsewhere(ctx, l, cfg.Addresses)
	if err != nil {
		return nil, err
	}
	if m.listener, err = cfg.Nodes.listen(ctx, everywhere); err != nil {
		_ = everywhere.Close()
		return nil, err
	}
	return m, nil
}

// start returns the loopback configuration of a running server.
func (m *management) start(g *components.Group) (*rest.Config, error) {
	defer func() { g.OnStop(func() { _ = m.listener.Close() }) }()
	db, err := etcd.Start(g.Context(), etcd.Config{Dir: m.cfg.Dir.Etcd(), Progress: m.cfg.Progress})
	if err != nil {
		return nil, err
	}
	g.OnStop(db.Close)
	g.Watch("etcd", db.Err())
	if err := m.configure(db.Endpoint()); err != nil {
		return nil, err
	}
	loopback := make(chan *rest.Config, 1)
	g.Serve("kube-apiserver", func(ctx context.Context) error {
		return m.server.Run(ctx, func(c *rest.Config) { loopback <- c })
	})
	select {
	case c := <-loopback:
		return c, m.admit(g, c)
	case <-g.Context().Done():
		return nil, g.Context().Err()
	}
}

// admit waits until the server is ready, and grants access to its users.
func (m *management) admit(g *components.Group, root *rest.Config) error {
	if err := components.AwaitReady(g, root, components.ReadyOptions{Exclude: slowHooks(), Report: m.cfg.Waiting}); err != nil {
		return err
	}
	if err := primeRoles(g.Context(), root, m.cfg.HideSecrets); err != nil {
		return err
	}
	if err := applyFairness(g.Context(), root, m.memory); err != nil {
		return err
	}
	if err := restrictNode(g.Context(), root, m.cfg.Nodes != nil); err != nil {
		return err
	}
	return components.BindAdmins(g.Context(), root, adminGroup)
}

// configure writes the files that the components read, and builds the components from their flags. It runs none of
// them.
func (m *management) configure(endpoint string) (err error) {
	auth := m.cfg.Dir.Path("pki", "authentication.json")
	if err := writeAuthentication(auth, m.cfg.Authentication, healthPaths[:]...); err != nil {
		return err
	}
	security, err := m.security(endpoint)
	if err != nil {
		return err
	}
	admission, err := m.pki.writeAdmission()
	if err != nil {
		return err
	}
	own := slices.Concat(managementFlags(m.pki.folder, endpoint, auth, m.cfg.Profiling), inFlightFlags(m.memory), security, []string{admission})
	if m.server, err = components.NewAPIServer(m.cfg.Nodes.server(own, m.pki.folder), m.listener, tenantLimits().tune()); err != nil {
		return err
	}
	m.server.IdentifyToConversions(m.pki.folder.Cert(webhookClient), m.pki.folder.Key(webhookClient))
	loops := m.cfg.Nodes.controllers(managementControllerFlags(m.pki.folder, m.pki.controllersKubeconfig()))
	if m.controllerManager, err = components.NewControllerManager(loops); err != nil {
		return err
	}
	if m.scheduler, err = m.cfg.Nodes.scheduler(m.pki.schedulerKubeconfig()); err != nil {
		return err
	}
	return m.server.ApplyFeatureGates()
}

// security writes the encryption configuration and the audit policy, and returns the flags that refer to
// them.
func (m *management) security(endpoint string) (flags []string, err error) {
	files := secretencryption.Files{Dir: m.cfg.Dir}
	used, err := files.Prepare(!m.cfg.EncryptSecrets, m.cfg.Now())
	if err != nil {
		return nil, err
	}
	if used {
		encryptionconfig.EncryptionConfigFileChangePollDuration = encryptionReload
		m.secretRewriter = &secretencryption.Rewriter{Files: files, Plain: !m.cfg.EncryptSecrets, Etcd: endpoint}
		flags = append(flags, "--encryption-provider-config="+files.Config(), "--encryption-provider-config-automatic-reload=true")
	}
	if m.cfg.Audit != nil {
		policy, err := componentconfig.AuditPolicy(*m.cfg.Audit)
		if err != nil {
			return nil, err
		}
		path := m.cfg.Dir.Path("pki", "audit-policy.json")
		if _, err := datadir.WriteFile(path, policy, 0o600); err != nil {
			return nil, err
		}
		flags = append(flags, append(auditFlags(m.cfg.Dir.AuditLog()), "--audit-policy-file="+path)...)
	}
	return flags, nil
}

// finish starts the remaining components. Those that need the default roles wait for them.
func (m *management) finish(g *components.Group, root *rest.Config, ready func()) {
	go renewPeriodically(g.Context(), m.pki.ensure)
	if m.secretRewriter != nil {
		m.secretRewriter.Root = jsonConfig(root)
		g.Run("encryption at rest", m.secretRewriter.Run)
	}
	g.Run(aggregation, func(ctx context.Context) error {
		return runAggregation(ctx, root)
	})
	g.Run("kube-controller-manager", func(ctx context.Context) error {
		if err := components.AwaitReady(g, root, components.ReadyOptions{Report: m.cfg.Waiting}); err != nil {
			return err
		}
		ready()
		return m.controllerManager.Run(ctx)
	})
	if m.scheduler != nil {
		g.Run("kube-scheduler", func(ctx context.Context) error {
			if err := components.AwaitReady(g, root, components.ReadyOptions{}); err != nil {
				return err
			}
			return m.scheduler.Run(ctx)
		})
	}
}

// slowHooks lists the post-start hooks that administrators need not wait for: the default roles, which are
// written after a delay of one second, and the default configuration of priority and fairness, from which
// administrators are exempt.
func slowHooks() []string {
	return []string{
		"poststarthook/rbac/bootstrap-roles",
		"poststarthook/priority-and-fairness-config-producer", "poststarthook/priority-and-fairness-config-consumer",
	}
}

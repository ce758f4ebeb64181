package plane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	etcdversion "go.etcd.io/etcd/api/v3/version"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/plane/apiserver"
	"github.com/slipwayhq/slipway/internal/plane/components"
	"github.com/slipwayhq/slipway/internal/plane/controllers"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/plane/etcd"
	"github.com/slipwayhq/slipway/internal/plane/group"
	"github.com/slipwayhq/slipway/internal/plane/scheduler"
)

// DefaultListen is where the management cluster's API is served.
const DefaultListen = "127.0.0.1:6440"

// ManagementConfig describes a management cluster.
type ManagementConfig struct {
	Dir    datadir.Dir      // which the caller holds
	Listen string           // ADDRESS:PORT, a loopback address; default DefaultListen; port 0 chooses one
	Now    func() time.Time // the clock of certificates; default time.Now
	// Providers by name get an identity each, ManagerUser and the name behind a colon, beside that of the manager.
	Providers []string
	// Profiling lets administrators read profiles of the process from the API server.
	Profiling bool
	// Nodes is set where the cluster is to have nodes.
	Nodes *Nodes
}

// Management is a management cluster that runs.
type Management struct {
	Server string // https URL
	// Root is a client configuration of group system:masters, good for as long as the cluster runs.
	Root  *rest.Config
	group *group.Group
	ready <-chan struct{}
}

// StartManagement starts the management cluster and returns when its API server
// serves Root; Ready waits for everybody else. It runs until ctx ends, Stop is
// called, or one of its parts fails.
func StartManagement(ctx context.Context, cfg ManagementConfig) (*Management, error) {
	m, err := newManagement(ctx, cfg)
	if err != nil {
		return nil, err
	}
	g := group.New(ctx)
	root, err := m.start(g)
	if err != nil {
		return nil, errors.Join(err, g.Stop())
	}
	ready := make(chan struct{})
	m.finish(g, root, func() { close(ready) })
	return &Management{Server: m.pki.server, Root: jsonConfig(root), group: g, ready: ready}, nil
}

// jsonConfig is a loopback configuration for clients of every kind of object:
// custom resources do not speak Protobuf.
func jsonConfig(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.ContentType, c.AcceptContentTypes = "", ""
	c.QPS = -1
	return c
}

// Ready waits until the API server says that it is ready, the check of its
// default roles included.
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

// Stop stops all parts in order and returns what ended them; nil for a stop
// that was requested.
func (m *Management) Stop() error { return m.group.Stop() }

type management struct {
	cfg      ManagementConfig
	listener net.Listener
	pki      managementPKI
	server   *apiserver.Server
	loops    *controllers.Manager
	pods     *scheduler.Scheduler // nil: there are no nodes
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
	m := &management{cfg: cfg, listener: l, pki: newManagementPKI(cfg, l.Addr().(*net.TCPAddr))}
	if err := m.pki.ensure(); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("prepare certificates: %w", err)
	}
	if m.listener, err = cfg.Nodes.listen(ctx, l); err != nil {
		_ = l.Close()
		return nil, err
	}
	return m, nil
}

// start returns the loopback configuration of a server that serves.
func (m *management) start(g *group.Group) (*rest.Config, error) {
	defer func() { g.OnStop(func() { _ = m.listener.Close() }) }()
	db, err := etcd.Start(g.Context(), etcd.Config{Dir: m.cfg.Dir.Etcd()})
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
		return nil, errors.Join(g.Cause(), g.Context().Err())
	}
}

// admit waits until the server serves, and lets everybody do what they may.
func (m *management) admit(g *group.Group, root *rest.Config) error {
	if err := components.AwaitReady(g, root, slowHooks()...); err != nil {
		return err
	}
	if err := primeRoles(g.Context(), root); err != nil {
		return err
	}
	if err := exempt(g.Context(), root); err != nil {
		return err
	}
	return components.BindAdmins(g.Context(), root, AdminGroup)
}

func (m *management) configure(endpoint string) (err error) {
	auth := m.cfg.Dir.Path("pki", "authentication.json")
	if err := writeAuthentication(auth, nil, healthPaths[:]...); err != nil {
		return err
	}
	flags, err := m.cfg.Nodes.server(managementFlags(m.pki.folder, endpoint, auth, m.cfg.Profiling), m.pki.folder)
	if err != nil {
		return err
	}
	if m.server, err = apiserver.New(flags, m.listener, nil); err != nil {
		return err
	}
	loops := m.cfg.Nodes.controllers(managementControllerFlags(m.pki.folder, m.pki.controllersKubeconfig()))
	if m.loops, err = controllers.New(loops); err != nil {
		return err
	}
	if m.pods, err = m.cfg.Nodes.scheduler(m.pki.schedulerKubeconfig()); err != nil {
		return err
	}
	return m.server.Gates()
}

// finish starts the rest; what needs the default roles waits for them.
func (m *management) finish(g *group.Group, root *rest.Config, ready func()) {
	go keepFresh(g.Context(), m.pki.ensure)
	g.Run(controllers.Aggregation, func(ctx context.Context) error {
		return controllers.RunAggregation(ctx, root)
	})
	g.Run("kube-controller-manager", func(ctx context.Context) error {
		if err := components.AwaitReady(g, root); err != nil {
			return err
		}
		ready()
		return m.loops.Run(ctx)
	})
	if m.pods != nil {
		g.Run("kube-scheduler", func(ctx context.Context) error {
			if err := components.AwaitReady(g, root); err != nil {
				return err
			}
			return m.pods.Run(ctx)
		})
	}
}

// slowHooks are the parts of kube-apiserver's start that administrators need not
// wait for: the default roles, which are written after a pause of a second, and
// the default configuration of priority and fairness, which they are exempt from.
func slowHooks() []string {
	return []string{
		"poststarthook/rbac/bootstrap-roles",
		"poststarthook/priority-and-fairness-config-producer", "poststarthook/priority-and-fairness-config-consumer",
	}
}

package plane

import (
	"context"
	"fmt"
	"net"
	"time"

	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/plane/apiserver"
	"github.com/slipwayhq/slipway/internal/plane/controllers"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/plane/etcd"
)

// DefaultListen is where the management cluster's API is served.
const DefaultListen = "127.0.0.1:6440"

// ManagementConfig describes a management cluster.
type ManagementConfig struct {
	Dir    datadir.Dir      // which the caller holds
	Listen string           // ADDRESS:PORT, a loopback address; default DefaultListen; port 0 chooses one
	Now    func() time.Time // the clock of certificates; default time.Now
}

// Management is a management cluster that is ready.
type Management struct {
	Server string // https URL
	group  *group
}

// StartManagement starts the management cluster and returns when its API server
// is ready and its administrators may use it. It runs until ctx ends, Stop is
// called, or one of its parts fails.
func StartManagement(ctx context.Context, cfg ManagementConfig) (*Management, error) {
	defer starting()()
	m, err := newManagement(ctx, cfg)
	if err != nil {
		return nil, err
	}
	g := newGroup(ctx)
	if err := m.start(g); err != nil {
		g.stop()
		return nil, err
	}
	return &Management{Server: m.pki.server, group: g}, nil
}

// Done is closed when the management cluster has stopped.
func (m *Management) Done() <-chan struct{} { return m.group.done }

// Stop stops all parts in order and returns what ended them; nil for a stop
// that was asked for.
func (m *Management) Stop() error { return m.group.stop() }

type management struct {
	cfg      ManagementConfig
	listener net.Listener
	pki      managementPKI
}

func newManagement(ctx context.Context, cfg ManagementConfig) (*management, error) {
	if cfg.Listen == "" {
		cfg.Listen = DefaultListen
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	l, err := listenLoopback(ctx, cfg.Listen)
	if err != nil {
		return nil, err
	}
	m := &management{cfg: cfg, listener: l, pki: newManagementPKI(cfg.Dir, l.Addr().(*net.TCPAddr), cfg.Now)}
	if err := m.pki.ensure(); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("prepare certificates: %w", err)
	}
	return m, nil
}

func (m *management) start(g *group) error {
	defer func() { g.onStop(func() { _ = m.listener.Close() }) }()
	db, err := etcd.Start(g.ctx, etcd.Config{Dir: m.cfg.Dir.Etcd()})
	if err != nil {
		return err
	}
	g.onStop(db.Close)
	g.watch("etcd", db.Err())

	auth := m.cfg.Dir.Path("pki", "authentication.json")
	if err := writeAuthentication(auth, healthPaths[:]...); err != nil {
		return err
	}
	server, err := apiserver.New(managementFlags(m.pki.folder, db.Endpoint(), auth), m.listener, nil)
	if err != nil {
		return err
	}
	loops, err := controllers.New(managementControllerFlags(m.pki.folder, m.pki.controllersKubeconfig()))
	if err != nil {
		return err
	}
	if err := server.Gates(); err != nil {
		return err
	}
	loopback := make(chan *rest.Config, 1)
	g.run("kube-apiserver", func(ctx context.Context) error {
		return server.Run(ctx, func(c *rest.Config) { loopback <- c })
	})
	if err := m.settle(g, loopback); err != nil {
		return err
	}
	g.run("kube-controller-manager", loops.Run)
	go keepFresh(g.ctx, m.pki.ensure)
	return nil
}

// settle waits for the API server and makes its administrators administrators.
func (m *management) settle(g *group, loopback <-chan *rest.Config) error {
	select {
	case c := <-loopback:
		if err := awaitReady(g, c); err != nil {
			return err
		}
		return bindAdmins(g.ctx, c, AdminGroup)
	case <-g.ctx.Done():
		return g.cause()
	}
}

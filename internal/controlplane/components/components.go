package components

import (
	"context"
	"net"

	"k8s.io/client-go/rest"
)

// Config contains the flags of the components of one workload cluster. Package childproc passes it as JSON to programs
// of other Kubernetes versions, which an earlier version of Slipway may have compiled, so its JSON names must stay.
type Config struct {
	// APIServer, ControllerManager and Scheduler are the flags of the components.
	APIServer         []string `json:"apiServer"`
	ControllerManager []string `json:"controllerManager"`
	Scheduler         []string `json:"scheduler"`
	// Admins is the group that is bound to the role cluster-admin.
	Admins string `json:"admins"`
}

// Components are the configured components of one workload cluster, which are not running yet.
type Components struct {
	admins    string
	server    *APIServer
	manager   *ControllerManager
	scheduler *Scheduler
}

// New configures the components. Package controlplane calls it for this build's Kubernetes version, and
// internal/controlplane/program in a child process for other versions. A process can only have one set of them. The API
// server will serve on l.
func New(cfg Config, l net.Listener) (c *Components, err error) {
	c = &Components{admins: cfg.Admins}
	if c.server, err = NewAPIServer(cfg.APIServer, l, nil); err != nil {
		return nil, err
	}
	if c.manager, err = NewControllerManager(cfg.ControllerManager); err != nil {
		return nil, err
	}
	if c.scheduler, err = NewScheduler(cfg.Scheduler); err != nil {
		return nil, err
	}
	return c, c.server.ApplyFeatureGates()
}

// Run runs the components until ctx ends or one of them fails. It returns nil if ctx ended. It calls ready
// once, when the API server is ready.
func (c *Components) Run(ctx context.Context, ready func()) error {
	g := NewGroup(ctx)
	if err := c.start(g); err != nil {
		return g.Abort(err)
	}
	ready()
	<-g.Done()
	return g.Cause()
}

// start starts the API server, and the other components when it is ready.
func (c *Components) start(g *Group) error {
	loopback := make(chan *rest.Config, 1)
	g.Serve("kube-apiserver", func(ctx context.Context) error {
		return c.server.Run(ctx, func(own *rest.Config) { loopback <- own })
	})
	select {
	case own := <-loopback:
		if err := AwaitReady(g, own, ReadyOptions{}); err != nil {
			return err
		}
		if err := BindAdmins(g.Context(), own, c.admins); err != nil {
			return err
		}
	case <-g.Context().Done():
		return g.Context().Err()
	}
	g.Run("kube-controller-manager", c.manager.Run)
	g.Run("kube-scheduler", c.scheduler.Run)
	return nil
}

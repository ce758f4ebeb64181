package up

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/heap"
	"github.com/slipwayhq/slipway/internal/plane"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/plane/logfile"
	"github.com/slipwayhq/slipway/internal/plane/process"
)

// stopWithin is how long the hosted control planes may take to stop.
const stopWithin = time.Minute

// service is one run of the management cluster with its controllers.
type service struct {
	dir         datadir.Dir
	listen      string
	gates       string
	controllers Controllers
	voice       func(stderr io.Writer) voice // stderr is what it was before the log took its place
}

// serve runs until ctx ends, which is no error, or a part fails.
func (s service) serve(ctx context.Context, e env.Env) error {
	host, _ := os.Hostname()
	h, err := datadir.Open(s.dir, datadir.Holder{PID: os.Getpid(), Host: host, Since: e.Now().UTC(), Version: buildinfo.Version()})
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }()
	stderr, restore, err := logfile.Redirect(ctx, s.dir.Log())
	if err != nil {
		return err
	}
	defer func() { _ = restore() }()
	return s.run(ctx, e, h, s.voice(stderr))
}

func (s service) run(ctx context.Context, e env.Env, h *datadir.Handle, v voice) error {
	v.tell("Starting the management cluster in " + string(s.dir) + " …")
	started := heap.Starting(heap.StartManagementMemory)
	m, err := s.startPlane(ctx, e)
	if err != nil {
		return err
	}
	run := datadir.Run{
		PID: os.Getpid(), Since: e.Now().UTC(), Version: buildinfo.Version(), KubernetesVersion: buildinfo.Kubernetes(),
		Server: m.Server, Instance: h.Instance,
	}
	if err := h.WriteRun(run); err != nil {
		return errors.Join(err, m.Stop())
	}
	defer func() { _ = h.ClearRun() }()
	v.tell("Kubernetes " + run.KubernetesVersion + " serves at " + m.Server + "; starting the controllers …")
	err = s.runControllers(ctx, e, m, h.Instance, func() error {
		if err := m.Ready(ctx); err != nil {
			return err
		}
		run.Ready = true
		if err := h.WriteRun(run); err != nil {
			return err
		}
		started()
		heap.Collect(heap.Management())
		v.ready()
		return nil
	})
	v.tell("Stopping …")
	return errors.Join(err, s.stop(m))
}

// startPlane lets ctx end the start only: once the cluster runs, it is to
// outlive the controllers.
func (s service) startPlane(ctx context.Context, e env.Env) (*plane.Management, error) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	started := context.AfterFunc(ctx, cancel)
	m, err := plane.StartManagement(own, plane.ManagementConfig{Dir: s.dir, Listen: s.listen, Now: e.Now})
	if err != nil {
		cancel()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	started()
	return m, nil
}

// runControllers returns when ctx ends, with nil, or the controllers or the
// management cluster fail.
func (s service) runControllers(ctx context.Context, e env.Env, m *plane.Management, instance string, ready func() error) error {
	host, err := s.host(e, m, instance)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-m.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	var once sync.Once
	var failed error
	host.Ready = func() {
		once.Do(func() {
			if failed = ready(); failed != nil {
				cancel()
			}
		})
	}
	err = s.controllers(ctx, host)
	cancel()
	<-stopped
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(failed, err)
}

func (s service) host(e env.Env, m *plane.Management, instance string) (Host, error) {
	manager, err := unlimited(s.dir.ManagerKubeconfig())
	if err != nil {
		return Host{}, err
	}
	executable, err := e.Executable()
	return Host{Dir: s.dir, FeatureGates: s.gates, Instance: instance, Executable: executable, Root: m.Root, Manager: manager}, err
}

// unlimited is a client configuration without limits of its own: the server is
// in this process, and limits what it takes.
func unlimited(kubeconfig string) (*rest.Config, error) {
	c, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	c.QPS = -1
	return c, nil
}

// stop ends the hosted control planes, then the management cluster.
func (s service) stop(m *plane.Management) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	return errors.Join(process.StopAll(ctx, s.dir.Planes()), m.Stop())
}

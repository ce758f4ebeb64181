package plane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/heap"
	"github.com/slipwayhq/slipway/internal/plane/apiserver"
	"github.com/slipwayhq/slipway/internal/plane/controllers"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/plane/etcd"
	"github.com/slipwayhq/slipway/internal/plane/pki"
	"github.com/slipwayhq/slipway/internal/plane/scheduler"
	"github.com/slipwayhq/slipway/internal/plane/workload"
)

// WorkloadConfig describes the control plane of a workload cluster.
type WorkloadConfig struct {
	workload.Config
	Folder workload.Folder  // with the authorities in its PKI folder
	Now    func() time.Time // the clock of certificates; default time.Now
}

// RunWorkload runs etcd, kube-apiserver, kube-controller-manager and
// kube-scheduler of one workload cluster in this process until ctx ends or one
// of them fails. It holds the folder's lock and writes its run.json.
func RunWorkload(ctx context.Context, cfg WorkloadConfig) error {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if included := buildinfo.Kubernetes(); cfg.Version != included {
		return fault.New(fault.Invalid, "VersionNotCarried", "this build of slipway includes Kubernetes %s, not %s", included, cfg.Version)
	}
	host, _ := os.Hostname()
	holder := datadir.Holder{PID: os.Getpid(), Host: host, Since: cfg.Now().UTC(), Version: buildinfo.Version()}
	lock, other, held, err := datadir.Acquire(cfg.Folder.Lock(), holder)
	if err != nil {
		return err
	}
	if held {
		return fmt.Errorf("the control plane in %s runs already as process %d", cfg.Folder, other.PID)
	}
	defer func() { _ = lock.Release() }()
	data, err := cfg.Folder.ReadData()
	if err != nil {
		return err
	}
	if err := errors.Join(data.Problem(cfg.Version), data.KeysProblem(cfg.EncryptionKeys)); err != nil {
		return err
	}
	started := heap.Starting(heap.StartWorkloadMemory)
	g := newGroup(ctx)
	if err := startWorkload(g, cfg, holder); err != nil {
		_ = g.stop()
		return err
	}
	started()
	<-g.done
	return g.cause()
}

func startWorkload(g *group, cfg WorkloadConfig, holder datadir.Holder) error {
	local, both, err := workloadListeners(g, cfg)
	if err != nil {
		return err
	}
	certs := workloadPKI{
		config: cfg.Config, local: local,
		folder: pki.Folder{Path: cfg.Folder.PKI(), Now: cfg.Now},
	}
	if err := certs.ensure(); err != nil {
		return err
	}
	db, err := etcd.Start(g.ctx, etcd.Config{Dir: cfg.Folder.Etcd(), Flags: cfg.Etcd})
	if err != nil {
		return err
	}
	g.onStop(db.Close)
	g.watch("etcd", db.Err())
	parts, err := workloadComponents(cfg, certs, db.Endpoint(), both)
	if err != nil {
		return err
	}
	err = cfg.Folder.WriteRun(workload.Run{
		PID: holder.PID, Since: holder.Since, Version: buildinfo.Kubernetes(), Slipway: buildinfo.Version(),
		Config: cfg.Hash(), Local: local, EncryptionKeys: cfg.EncryptionKeys,
	})
	if err != nil {
		return err
	}
	go keepFresh(g.ctx, certs.ensure)
	return parts.start(g)
}

// workloadListeners opens the endpoint and, where that is not loopback itself, a
// listener beside it.
func workloadListeners(g *group, cfg WorkloadConfig) (local string, both net.Listener, err error) {
	endpoint, err := cfg.Address()
	if err != nil {
		return "", nil, err
	}
	both, err = listenFree(g.ctx, cfg.Endpoint)
	if err != nil {
		return "", nil, err
	}
	if !endpoint.Addr().IsLoopback() {
		loopback, err := listenBeside(g.ctx, endpoint)
		if err != nil {
			_ = both.Close()
			return "", nil, err
		}
		both = join(loopback, both)
	}
	g.onStop(func() { _ = both.Close() })
	return both.Addr().String(), both, nil
}

// kubeadmAdmins is the group that kubeadm gives to administrators and to the
// API server's client for kubelets.
const kubeadmAdmins = "kubeadm:cluster-admins"

type workloadParts struct {
	server    *apiserver.Server
	loops     *controllers.Manager
	scheduler *scheduler.Scheduler
}

func workloadComponents(cfg WorkloadConfig, certs workloadPKI, endpoint string, l net.Listener) (p workloadParts, err error) {
	files, err := workloadFiles(cfg)
	if err != nil {
		return p, err
	}
	if p.server, err = apiserver.New(workloadAPIServerFlags(cfg.Config, certs.folder, endpoint, files), l, nil); err != nil {
		return p, err
	}
	if p.loops, err = controllers.New(workloadControllerFlags(cfg.Config, certs.folder, certs.kubeconfig("controller-manager"))); err != nil {
		return p, err
	}
	if p.scheduler, err = scheduler.New(workloadSchedulerFlags(cfg.Config, certs.kubeconfig("scheduler"))); err != nil {
		return p, err
	}
	return p, p.server.Gates()
}

// start runs the API server, and the others when it is ready.
func (p workloadParts) start(g *group) error {
	loopback := make(chan *rest.Config, 1)
	g.serve("kube-apiserver", func(ctx context.Context) error {
		return p.server.Run(ctx, func(c *rest.Config) { loopback <- c })
	})
	select {
	case c := <-loopback:
		if err := awaitReady(g, c); err != nil {
			return err
		}
		if err := bindAdmins(g.ctx, c, kubeadmAdmins); err != nil {
			return err
		}
	case <-g.ctx.Done():
		return errors.Join(g.cause(), g.ctx.Err())
	}
	g.run("kube-controller-manager", p.loops.Run)
	g.run("kube-scheduler", p.scheduler.Run)
	return nil
}

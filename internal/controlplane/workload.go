package controlplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/controlplane/childproc"
	"github.com/slipwayhq/slipway/internal/controlplane/components"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/etcd"
	"github.com/slipwayhq/slipway/internal/controlplane/listeners"
	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/heap"
)

// WorkloadConfig configures the control plane of a workload cluster. The hidden command `slipway control-plane run`
// fills it.
type WorkloadConfig struct {
	processconfig.Config
	Folder processconfig.Folder // contains the CAs in its PKI directory
	// ExternalPath is the path of the directory for other programs, if Folder is [processconfig.WorkingDir]. It
	// defaults to Folder.
	ExternalPath processconfig.Folder
	Now          func() time.Time // clock of certificates; default time.Now
	// Program returns the program with the components of a Kubernetes version that is not included in this
	// build.
	Program func(version string) (string, error)
	// Become changes the user of this process after the program was found and the ports were opened. If nil,
	// the user is not changed.
	Become func() error
}

// RunWorkload runs etcd, kube-apiserver, kube-controller-manager and kube-scheduler of one workload cluster, or etcd
// alone, until ctx ends or one of them fails. The hidden command "control-plane run" calls it, in a process that
// package supervisor or a Pod starts for each hosted control plane. The components run in this process. If the
// Kubernetes version differs from this build, all but etcd run in a child process. It holds the lock of the directory
// and writes run.json, which the supervisor reads. Operations that need root are done before cfg.Become.
func RunWorkload(ctx context.Context, cfg WorkloadConfig) error {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	var program string
	if cfg.Version != buildinfo.Kubernetes() {
		var err error
		if program, err = cfg.Program(cfg.Version); err != nil {
			return err
		}
	}
	if other, held, err := datadir.Probe(cfg.Folder.Lock()); err != nil {
		return err
	} else if held {
		return cfg.runsAlready(other)
	}
	g := components.NewGroup(ctx)
	lock, err := runIn(g, cfg, program)
	if lock != nil { // held while anything runs
		defer func() { _ = lock.Release() }()
	}
	if err != nil {
		return g.Abort(err)
	}
	<-g.Done()
	return g.Cause()
}

func (c WorkloadConfig) runsAlready(other datadir.Holder) error {
	return fmt.Errorf("the control plane in %s runs already as process %d", cmp.Or(c.ExternalPath, c.Folder), other.PID)
}

// runIn starts the control plane in a group. It returns the lock once it is held, even if the start fails
// later.
func runIn(g *components.Group, cfg WorkloadConfig, program string) (*datadir.Lock, error) {
	ports, err := workloadListeners(g, cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Become != nil {
		if err := cfg.Become(); err != nil {
			return nil, err
		}
	}
	holder := datadir.CurrentProcess(cfg.Now())
	lock, other, held, err := datadir.Acquire(cfg.Folder.Lock(), holder)
	if err != nil {
		return nil, err
	}
	if held {
		return nil, cfg.runsAlready(other)
	}
	return lock, startIn(g, cfg, holder, startOptions{program: program, ports: ports})
}

// startIn completes a requested restore of an etcd snapshot, checks that the data may be opened, and starts the
// configured components. The lock must be held.
func startIn(g *components.Group, cfg WorkloadConfig, holder datadir.Holder, how startOptions) error {
	if err := etcd.ApplyRestore(cfg.Folder, cfg.Config, cfg.Now()); err != nil {
		return err
	}
	data, err := cfg.Folder.ReadData()
	if err != nil {
		return err
	}
	if err := errors.Join(data.Problem(cfg.Version), data.KeysProblem(cfg.EncryptionKeys, cfg.EncryptionMark)); err != nil {
		return err
	}
	how.mark = cmp.Or(cfg.EncryptionMark, data.EncryptionMark)
	started := heap.TuneForStartup(heap.StartWorkloadMemory)
	how.ready = func() {
		started()
		heap.Collect(heap.Workload())
	}
	if cfg.RunMode == processconfig.RunEtcdOnly {
		return startEtcd(g, cfg, holder, how)
	}
	return startWorkload(g, cfg, holder, how)
}

// startOptions contains parameters of a start.
type startOptions struct {
	program string // empty to run in this process
	ports   ports
	ready   func() // called when the API server is ready
	mark    string // mark of the last rewrite of encrypted data
}

func startWorkload(g *components.Group, cfg WorkloadConfig, holder datadir.Holder, how startOptions) error {
	certs := workloadPKI{
		config: cfg.Config, local: how.ports.local,
		folder: pki.Folder{Path: cfg.Folder.PKI(), Now: cfg.Now},
	}
	if err := certs.ensure(); err != nil {
		return err
	}
	db, err := startDatabase(g, cfg)
	if err != nil {
		return err
	}
	flags, err := workloadComponents(cfg, certs, db.Endpoint())
	if err != nil {
		return err
	}
	run, child, err := how.configure(g, flags)
	if err != nil {
		return err
	}
	says := runOf(cfg, holder, how.mark)
	says.Local, says.Child = how.ports.local, child
	if err := cfg.Folder.WriteRun(says); err != nil {
		return err
	}
	go renewPeriodically(g.Context(), certs.ensure)
	g.Serve("Kubernetes "+cfg.Version, func(ctx context.Context) error { return run(ctx, how.ready) })
	return nil
}

func startDatabase(g *components.Group, cfg WorkloadConfig) (*etcd.Server, error) {
	db, err := etcd.Start(g.Context(), etcd.Config{Dir: cfg.Folder.Etcd(), ExternalPath: cmp.Or(cfg.ExternalPath, cfg.Folder).Etcd(), Flags: cfg.Etcd})
	if err != nil {
		return nil, err
	}
	g.OnStop(db.Close)
	g.Watch("etcd", db.Err())
	return db, nil
}

// startEtcd starts etcd alone. Only programs that can open its socket write to it.
func startEtcd(g *components.Group, cfg WorkloadConfig, holder datadir.Holder, how startOptions) error {
	if _, err := startDatabase(g, cfg); err != nil {
		return err
	}
	how.ready()
	return cfg.Folder.WriteRun(runOf(cfg, holder, how.mark))
}

// runOf returns the published state of this process.
func runOf(cfg WorkloadConfig, holder datadir.Holder, mark string) processconfig.Run {
	return processconfig.Run{
		PID: holder.PID, Since: holder.Since, Version: cfg.Version, Slipway: buildinfo.Version(),
		Config: cfg.Hash(), RunMode: cfg.RunMode, EncryptionKeys: cfg.EncryptionKeys, EncryptionMark: mark,
		Relocatable: cfg.Folder == processconfig.WorkingDir && etcd.SocketInside(cfg.ExternalPath.Etcd()),
	}
}

// runComponents runs the components until its context ends. It calls the function when they are ready.
type runComponents func(context.Context, func()) error

// configure returns a function that runs the components, in this process or in a child process, after their flags were
// accepted, and the PID of the child process, if any.
func (s startOptions) configure(g *components.Group, cfg components.Config) (_ runComponents, child int, _ error) {
	open := s.ports.open
	if s.program != "" {
		child, err := childproc.Launch(g.Context(), s.program, cfg, open)
		if err != nil {
			return nil, 0, err
		}
		g.OnStop(child.Close)
		return child.Run, child.PID(), nil
	}
	var both net.Listener = open[0]
	if len(open) > 1 {
		both = listeners.Merge(both, open[1])
		g.OnStop(func() { _ = both.Close() })
	}
	own, err := components.New(cfg, both)
	if err != nil {
		return nil, 0, err
	}
	return own.Run, 0, nil
}

// kubeadmAdmins is the group that kubeadm uses for administrators and for the API server's kubelet client.
const kubeadmAdmins = "kubeadm:cluster-admins"

func workloadComponents(cfg WorkloadConfig, certs workloadPKI, endpoint string) (components.Config, error) {
	files, err := workloadFiles(cfg)
	if err != nil {
		return components.Config{}, err
	}
	return components.Config{
		APIServer:         workloadAPIServerFlags(cfg.Config, certs.folder, endpoint, files),
		ControllerManager: workloadControllerFlags(cfg.Config, certs.folder, certs.kubeconfig("controller-manager")),
		Scheduler:         workloadSchedulerFlags(cfg.Config, certs.kubeconfig("scheduler")),
		Admins:            kubeadmAdmins,
	}, nil
}

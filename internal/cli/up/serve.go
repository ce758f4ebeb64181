package up

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"k8s.io/klog/v2"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane"
	"github.com/slipwayhq/slipway/internal/controlplane/childproc"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/controlplane/supervisor"
	"github.com/slipwayhq/slipway/internal/heap"
	"github.com/slipwayhq/slipway/internal/local/loadbalancer"
	"github.com/slipwayhq/slipway/internal/policy"
)

// planesStopTimeout is the timeout for stopping the hosted control planes. The supervisor waits longer than that
// (childStopTimeout).
const planesStopTimeout = time.Minute

// service is one run of `slipway up` in the foreground: the management cluster with its controllers. flags.run creates
// it.
type service struct {
	dir         datadir.Dir
	listen      string
	gates       string
	policy      policy.Configuration
	prepare     prepareFunc
	node        nodeFlag
	flags       map[string]string                       // for the next start
	newReporter func(stderr io.Writer) progressReporter // stderr is the original standard error, before it was redirected to the log
}

// serve runs until ctx is done, which is not an error, or until a part fails.
func (s service) serve(ctx context.Context, e term.Env) error {
	h, err := datadir.Open(s.dir, datadir.CurrentProcess(e.Now()))
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }()
	stderr, restore, err := childproc.RedirectLog(ctx, s.dir.Log())
	if err != nil {
		return err
	}
	defer func() { _ = restore() }()
	if err := s.limitMemory(); err != nil {
		return err
	}
	err = s.run(ctx, e, h, s.newReporter(stderr))
	if err != nil && ctx.Err() == nil { // log the reason independent of other reports
		klog.ErrorS(err, "the management cluster failed")
	}
	return err
}

// limitMemory makes the garbage collector of this process, which runs etcd and the API server, more aggressive before
// the process exceeds its share of the memory.
func (s service) limitMemory() error {
	limit := s.policy.Management.MemoryMiB << 20
	if limit == 0 {
		half, err := heap.DefaultLimit()
		if err != nil {
			return err
		}
		limit = half / 5 * 4
	}
	heap.Limit(limit)
	return nil
}

// run starts the management cluster, then the manager, and stops both. serve calls it with the lock of the data
// directory.
func (s service) run(ctx context.Context, e term.Env, h *datadir.Handle, v progressReporter) error {
	v.step("Starting the management cluster in " + string(s.dir) + " …")
	started := heap.TuneForStartup(heap.StartManagementMemory)
	n, err := s.node.reserve(ctx, s, h)
	if err != nil {
		return err
	}
	m, err := s.startCluster(ctx, e, n.nodes(), v)
	if err != nil {
		return err
	}
	run := datadir.Run{
		PID: os.Getpid(), Since: e.Now().UTC(), Version: buildinfo.Version(), KubernetesVersion: buildinfo.Kubernetes(),
		Server: m.Server, Instance: h.Instance,
		Networks: s.networks(), Nodes: s.nodes(e.Getenv),
	}
	if err := h.WriteRun(run); err != nil {
		return errors.Join(err, m.Stop())
	}
	defer func() { _ = h.ClearRun() }()
	v.step("Kubernetes " + run.KubernetesVersion + " serves at " + m.Server + "; starting the controllers …")
	if err := s.prepare(ctx, m.Root, s.policy.Sets()); err != nil {
		if ctx.Err() != nil { // the process is shutting down
			err = nil
		}
		return errors.Join(err, s.stop(m))
	}
	warnOfExtensions(ctx, m.Root, v)
	if err := publishLocation(ctx, m.Root, h, e.Getenv); err != nil && ctx.Err() == nil { // only "slipway move" needs it
		klog.ErrorS(err, "publishing the location of the management cluster failed")
	}
	manager := &managerRunner{service: s, handle: h, state: run, root: m.Root, reporter: v, clusterNode: n}
	err = manager.run(ctx, e, m, func() {
		started()
		heap.Collect(heap.Management())
	})
	v.step("Stopping …")
	return errors.Join(err, s.stop(m))
}

// networks returns the allowed networks of clusters. "create cluster" and "generate cluster" read them from run.json.
func (s service) networks() *datadir.NetworkLimits {
	out := &datadir.NetworkLimits{Ranges: s.policy.Networks.Ranges, WidestPrefix: s.policy.Networks.WidestPrefix}
	for _, n := range s.policy.ReachableHosts() {
		out.Named = append(out.Named, n.Host)
	}
	return out
}

// nodes returns the allowed nodes of clusters. "create cluster" and "upgrade cluster" read them from run.json.
func (s service) nodes(getenv func(string) string) *datadir.NodeLimits {
	n := s.policy.Nodes
	return &datadir.NodeLimits{Images: n.Images, CPUs: n.CPUs, MemoryMiB: n.MemoryMiB, Processes: n.Processes, Docker: hosttransfer.DockerAddress(getenv)}
}

// startCluster starts the management cluster. ctx cancels only the start, because a running management cluster must
// outlive the controllers.
func (s service) startCluster(ctx context.Context, e term.Env, nodes *controlplane.Nodes, v progressReporter) (*controlplane.Management, error) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	started := context.AfterFunc(ctx, cancel)
	cfg := controlplane.ManagementConfig{
		Dir: s.dir, Listen: s.listen, Now: e.Now, Nodes: nodes,
		EncryptSecrets: s.policy.Management.EncryptSecrets, HideSecrets: !s.policy.Management.EditSecrets, Audit: s.policy.Management.Audit,
		Authentication: s.policy.Management.Authentication, Addresses: s.policy.Management.Addresses, Names: s.policy.Management.Names,
		Waiting: func(reason string) {
			v.step("Waiting for the API server to be ready (" + reason + "); on a busy host this takes minutes …")
		},
	}
	for _, set := range s.policy.Sets() {
		if len(set.Controllers) > 0 {
			cfg.Providers = append(cfg.Providers, string(set.Name))
		}
	}
	m, err := controlplane.StartManagement(own, cfg)
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

// stop stops the hosted control planes and the load balancers, then the management cluster.
func (s service) stop(m *controlplane.Management) error {
	ctx, cancel := context.WithTimeout(context.Background(), planesStopTimeout)
	defer cancel()
	return errors.Join(supervisor.StopAll(ctx, s.dir.Planes()), loadbalancer.StopAll(ctx, s.dir.Balancers()), m.Stop())
}

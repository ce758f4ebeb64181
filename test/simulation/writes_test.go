package simulation

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/controllers/cluster"
	"github.com/slipwayhq/slipway/internal/controllers/machine"
	"github.com/slipwayhq/slipway/internal/controllers/machinedeployment"
	"github.com/slipwayhq/slipway/internal/controllers/machinepool"
	"github.com/slipwayhq/slipway/internal/controllers/machineset"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/supervisor"
	"github.com/slipwayhq/slipway/internal/hosted"
	hostedbackend "github.com/slipwayhq/slipway/internal/hosted/backend"
	"github.com/slipwayhq/slipway/internal/hosted/process"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/kubeadm/bootstrap"
	localbackend "github.com/slipwayhq/slipway/internal/local/backend"
	localcluster "github.com/slipwayhq/slipway/internal/local/cluster"
	localmachine "github.com/slipwayhq/slipway/internal/local/machine"
	localmachinepool "github.com/slipwayhq/slipway/internal/local/machinepool"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/test/testhost"
	"github.com/slipwayhq/slipway/test/testkit"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// tally counts the writes of a client: verb, kind, field manager.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

// wrap counts what goes through a transport and is not a read.
func (w *tally) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet {
			w.mu.Lock()
			w.counts[describe(r)]++
			w.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// describe names a write: resource, subresource, verb, type of patch, field manager.
func describe(r *http.Request) string {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	at := slices.Index(parts, "namespaces") + 2
	what := parts[at:]
	if len(what) > 1 {
		what = append(what[:1:1], what[2:]...)
	}
	verb := strings.ToLower(r.Method)
	if strings.Contains(r.Header.Get("Content-Type"), "apply") {
		verb = "apply"
	}
	return fmt.Sprintf("%-32s %-6s %s", strings.Join(what, "/"), verb, r.URL.Query().Get("fieldManager"))
}

// total returns the number of writes and a table of them.
func (w *tally) total() (int, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, table := 0, ""
	for _, key := range slices.Sorted(maps.Keys(w.counts)) {
		n += w.counts[key]
		table += fmt.Sprintf("%4d  %s\n", w.counts[key], key)
	}
	return n, table
}

func (w *tally) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts = map[string]int{}
}

// planes are control planes without a process: they answer as soon as they are started.
type planes struct {
	mu   sync.Mutex
	runs map[string]hostedbackend.ControlPlane
	// local is where their API servers answer on this host.
	local string
	wake  func(string)
}

func newPlanes(local string) *planes {
	return &planes{runs: map[string]hostedbackend.ControlPlane{}, local: local}
}

func (p *planes) Status(_ context.Context, name string) (hostedbackend.ControlPlane, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.runs[name], nil
}

func (p *planes) Start(_ context.Context, name string, cfg processconfig.Config, _ map[string][]byte) error {
	p.mu.Lock()
	p.runs[name] = hostedbackend.ControlPlane{Exists: true, Running: true, Ready: true, EtcdReady: true, PID: 1, Local: p.local, Since: time.Now(), Version: cfg.Version, Config: cfg.Hash()}
	p.mu.Unlock()
	p.wake(name)
	return nil
}

func (p *planes) Count(context.Context, string) (own, all int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.runs), len(p.runs), nil // of one namespace
}

func (p *planes) Remove(_ context.Context, name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.runs, name)
	return nil
}

func (p *planes) Subscribe(changed func(name string)) (cancel func()) {
	p.wake = changed
	return func() {}
}

func (p *planes) Capabilities(allowed policy.Configuration) hostedbackend.Capabilities {
	s := supervisor.New(context.Background(), supervisor.Config{Versions: func() []string { return []string{"v1.36.3"} }})
	defer s.Close()
	return process.New(s, false).ControlPlanes.Capabilities(allowed)
}

// gateways are those of the host that is played.
type gateways struct{ host *testhost.Host }

func (g gateways) Gateway(ctx context.Context, of types.NamespacedName) (netip.Addr, bool, error) {
	n, found, err := g.host.FindNetwork(ctx, localbackend.Ref{Object: of, Name: localbackend.NetworkName("i", of)})
	return n.Gateway, found, err
}

// nodes plays what happens on the machines of a host: their bootstrap succeeds, and a Node appears.
type nodes struct {
	host     *testhost.Host
	workload client.Client
}

// Watch implements localbackend.Watcher.
func (n nodes) Watch(ctx context.Context, handle func(localbackend.Event)) error {
	known := 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(5 * time.Millisecond):
		}
		if log := n.host.Log(); len(log) != known { // such as a network that was made
			known = len(log)
			handle(localbackend.Event{})
		}
		list, err := n.host.List(ctx)
		if err != nil {
			return err
		}
		for _, m := range list {
			if err := n.boot(ctx, m, handle); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

func (n nodes) boot(ctx context.Context, m localbackend.Machine, handle func(localbackend.Event)) error {
	p, err := n.host.Progress(ctx, localbackend.Ref{Object: m.Owner.Object, Name: m.Name})
	if err != nil || p.Phase != localbackend.InProgress {
		return nil
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Hostname}, Spec: corev1.NodeSpec{ProviderID: localbackend.ProviderID(m.Name)}}
	node.Status.NodeInfo.KubeletVersion = "v1.36.3"
	if err := n.workload.Create(ctx, node); err != nil {
		return err
	}
	for _, t := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: t, Status: "False"})
	}
	node.Status.NodeInfo.KubeletVersion = "v1.36.3"
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: "True"})
	if err := n.workload.Status().Update(ctx, node); err != nil {
		return err
	}
	n.host.Change(m.Name, func(m *testhost.Machine) { m.Progress.Phase = localbackend.Succeeded })
	handle(localbackend.Event{Machine: types.NamespacedName(m.Owner.Object)})
	return nil
}

// fleet is controllers over one API server.
type fleet struct {
	live
	watcher client.WithWatch
	// local is where the API server answers, authority is its own.
	local     string
	authority map[string][]byte
	writes    *tally
}

// startFleet starts every controller, with control planes and machines that are played.
func startFleet(t *testing.T) fleet {
	t.Helper()
	return startManager(t, fleet.add)
}

// startManager starts the controllers that are added.
func startManager(t *testing.T, add func(fleet, manager.Manager)) fleet {
	t.Helper()
	objects := append(apiserver.CRDs(t), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	srv := apiserver.Start(t, apiserver.Options{Objects: objects})
	f := fleet{writes: &tally{counts: map[string]int{}}}
	access := rest.CopyConfig(srv.Config)
	access.Wrap(f.writes.wrap)
	f.live = live{t: t}
	var err error
	f.watcher, err = client.NewWithWatch(srv.Config, client.Options{Scheme: newScheme(t)})
	f.must(err)
	f.Client = f.watcher
	f.kubeconfig, err = os.ReadFile(srv.Kubeconfig)
	f.must(err)
	f.local, f.authority = strings.TrimPrefix(srv.Config.Host, "https://"), map[string][]byte{}
	for key, file := range map[string]string{corev1.TLSCertKey: "ca.crt", corev1.TLSPrivateKeyKey: "ca.key"} {
		f.authority[key], err = os.ReadFile(filepath.Join(srv.Dir, "pki", file))
		f.must(err)
	}
	mgr, err := ctrl.NewManager(access, manager.Options{
		Scheme: newScheme(t), Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Cache: cache.Options{DefaultTransform: kube.PruneManagedFields},
		Client:     client.Options{Cache: &client.CacheOptions{Unstructured: true, DisableFor: []client.Object{&corev1.Secret{}}}},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)}, // one process, several managers
	})
	f.must(err)
	add(f, mgr)
	testkit.RunBackground(t, mgr.Start)
	return f
}

func (f fleet) add(mgr manager.Manager) {
	clusters, err := workload.New(workload.Config{Management: mgr.GetClient()})
	f.must(err)
	// With a pace this slow no more is counted on a busy machine than on an idle one: what only reports is written later.
	setup := reconciler.Setup{Manager: mgr, Concurrency: 10, StatusInterval: time.Minute, NormalEvents: rate.NewLimiter(0, 20)}
	host := testhost.New()
	hub := localbackend.NewBroadcaster(nodes{host: host, workload: f.Client})
	for _, add := range []func() error{
		func() error { return clusters.SetupWithManager(mgr) },
		func() error { return cluster.Add(setup, clusters, cluster.Settings{}) },
		func() error { return machine.Add(setup, clusters, nil, machine.Settings{}) },
		func() error { return machinepool.Add(setup, clusters, machinepool.Settings{Policy: policy.Default()}) },
		func() error { return machineset.Add(setup, clusters, machineset.Settings{}) },
		func() error { return machinedeployment.Add(setup, nil, machinedeployment.Settings{}) },
		func() error { return bootstrap.Add(setup, clusters, bootstrap.Settings{}) },
		func() error {
			return hosted.Add(setup, hosted.Config{
				Backends: hostedbackend.Set{hostedv1.BackendProcess: {ControlPlanes: newPlanes(f.local)}}, Gateways: gateways{host}, Workloads: clusters,
			})
		},
		func() error {
			return localcluster.Add(setup, localcluster.Config{Instance: "i", Backends: host.Set(), Hub: hub, Policy: policy.Default()})
		},
		func() error {
			return localmachine.Add(setup, localmachine.Config{Instance: "i", Backends: host.Set(), Hub: hub, Policy: policy.Default()})
		},
		func() error {
			return localmachinepool.Add(setup, localbackend.CapacityCalculator{Backends: host.Set(), Policy: policy.Default()})
		},
		func() error { return mgr.Add(hub) },
	} {
		f.must(add())
	}
}

// createCluster creates what a user would, and the kubeconfig that leads to the API server of the test.
func (f fleet) createCluster() *clusterv1.Cluster {
	f.t.Helper()
	c := &clusterv1.Cluster{ObjectMeta: meta("c")}
	c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalCluster", Name: "c"}
	c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: hostedv1.GroupVersion.Group, Kind: "HostedControlPlane", Name: "c"}
	c.Spec.ClusterNetwork.Pods.CIDRBlocks, c.Spec.ClusterNetwork.Services.CIDRBlocks = []string{"172.16.32.0/19"}, []string{"172.16.16.0/20"}
	plane := &hostedv1.HostedControlPlane{ObjectMeta: meta("c")}
	plane.Spec.Version = "v1.36.3"
	plane.Spec.Addons.CoreDNS.Disabled, plane.Spec.Addons.KubeProxy.Disabled = true, true
	infra := &infrav1.LocalCluster{ObjectMeta: meta("c")}
	infra.Spec.Backend.Container = &infrav1.ContainerCluster{}
	for _, o := range []client.Object{
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
			Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{"value": f.kubeconfig}, // of a user
		},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c-ca", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
			Type:       corev1.SecretTypeOpaque, Data: f.authority, // likewise, so that the API server of the test is the control plane's
		}, c, infra, plane,
	} {
		f.must(f.Create(f.t.Context(), o))
	}
	return c
}

func (f fleet) createPool(replicas int32) *clusterv1.MachinePool {
	pool := &clusterv1.MachinePool{ObjectMeta: meta("p")}
	pool.Spec.ClusterName, pool.Spec.Replicas = "c", &replicas
	pool.Spec.Template.Spec = clusterv1.MachineSpec{
		ClusterName: "c", Version: "v1.36.3",
		Bootstrap:         clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubeadmConfig", Name: "p"}},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalMachinePool", Name: "p"},
	}
	infra := &infrav1.LocalMachinePool{ObjectMeta: meta("p")}
	infra.Spec.Template.Backend.Container = &infrav1.ContainerMachine{}
	for _, o := range []client.Object{&bootstrapv1.KubeadmConfig{ObjectMeta: meta("p")}, infra, pool} {
		f.must(f.Create(f.t.Context(), o))
	}
	return pool
}

// createDeployment creates a MachineDeployment and the templates of its Machines.
func (f fleet) createDeployment(replicas int32) *clusterv1.MachineDeployment {
	f.t.Helper()
	d := &clusterv1.MachineDeployment{ObjectMeta: meta("d")}
	labels := map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineDeploymentNameLabel: "d"}
	d.Spec.ClusterName, d.Spec.Replicas = "c", &replicas
	d.Spec.Selector.MatchLabels, d.Spec.Template.Labels = labels, labels
	d.Spec.Rollout.Strategy.Type = clusterv1.RollingUpdateMachineDeploymentStrategyType
	d.Spec.Template.Spec = clusterv1.MachineSpec{
		ClusterName: "c", Version: "v1.36.3",
		Bootstrap:         clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubeadmConfigTemplate", Name: "d"}},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Kind: "LocalMachineTemplate", Name: "d"},
	}
	config := &bootstrapv1.KubeadmConfigTemplate{ObjectMeta: meta("d")}
	config.Spec.Template.Spec.JoinConfiguration.NodeRegistration.IgnorePreflightErrors = []string{"SystemVerification"}
	infra := &infrav1.LocalMachineTemplate{ObjectMeta: meta("d")}
	infra.Spec.Template.Spec.Backend.Container = &infrav1.ContainerMachine{}
	for _, o := range []client.Object{config, infra, d} {
		f.must(f.Create(f.t.Context(), o))
	}
	return d
}

func isAvailable(o reconciler.Object) func() bool {
	return func() bool { return condition.Set(o.GetConditions()).IsTrue(clusterv1.AvailableCondition) }
}

// quiet waits until nothing is written for a while.
func (f fleet) quiet() {
	f.t.Helper()
	before, _ := f.writes.total()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		<-time.After(3 * time.Second)
		now, _ := f.writes.total()
		if now == before {
			return
		}
		before = now
	}
	f.t.Fatal("there is no end of writing")
}

// The goals of the fleet: how often the API may be written for a cluster with a worker, and for another worker.
const (
	writesPerCluster = 60
	writesPerWorker  = 16
)

func TestWritesOfACluster(t *testing.T) { // FG-03
	f := startFleet(t)
	began := time.Now()
	c, d := f.createCluster(), f.createDeployment(1)
	f.eventually("the MachineDeployment is available", d, isAvailable(d))
	f.eventually("the Cluster is available", c, isAvailable(c))
	t.Logf("available after %s", time.Since(began).Round(time.Millisecond))
	f.spent("a cluster with one worker", writesPerCluster)

	const more = 10
	began = time.Now()
	change(f.live, d, func(d *clusterv1.MachineDeployment) { *d.Spec.Replicas += more })
	f.eventually("the MachineDeployment has scaled", d, func() bool {
		return isAvailable(d)() && d.Status.AvailableReplicas != nil && *d.Status.AvailableReplicas == 1+more
	})
	t.Logf("scaled after %s", time.Since(began).Round(time.Millisecond))
	f.spent("ten more workers of a MachineDeployment", writesPerWorker*more)

	pool := f.createPool(1)
	f.eventually("the pool is available", pool, isAvailable(pool))
	f.quiet()
	f.writes.reset()
	change(f.live, pool, func(p *clusterv1.MachinePool) { *p.Spec.Replicas += more })
	f.eventually("the pool has scaled", pool, func() bool {
		return isAvailable(pool)() && pool.Status.AvailableReplicas != nil && *pool.Status.AvailableReplicas == 1+more
	})
	f.spent("ten more workers of a MachinePool", writesPerWorker*more)
}

// spent waits until nothing is written any more, and counts what was since the last time.
func (f fleet) spent(what string, most int) {
	f.t.Helper()
	f.quiet()
	n, table := f.writes.total()
	f.t.Logf("%s: %d writes\n%s", what, n, table)
	if n > most {
		f.t.Errorf("%s: %d writes, want at most %d", what, n, most)
	}
	f.writes.reset()
}

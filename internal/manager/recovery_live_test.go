package manager_test

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kubeadmv1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/config/rbac"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/etcdrecovery"
	"github.com/slipwayhq/slipway/internal/operate/progress"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/snapshots"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// A control plane of three simulated machines loses two members of etcd: it says so, and is recovered from the one that is left, by the verb's
// library, though the manager is killed in the middle.
func TestRecovery(t *testing.T) { // KC-16, KC-19
	f := startTower(t)
	c, cluster, order, said := f.client, f.cluster, f.order, &f.said

	if _, err := order.Prepare(t.Context(), cluster, etcdrecovery.RecoveryOptions{}); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "has a quorum") {
		t.Errorf("a control plane with a quorum: %v", err)
	}
	before := controlPlaneMachines(t, c)
	for _, m := range before[1:] {
		breakEtcd(t, c, m.Spec.InfrastructureRef.Name)
	}
	for _, name := range []string{kubeadmv1.KubeadmControlPlaneAvailableCondition, kubeadmv1.KubeadmControlPlaneEtcdClusterHealthyCondition} {
		eventually(t, name+" says that the quorum is lost", func() error {
			got := condition.Set(spire(t, c).Status.Conditions).Get(name)
			if got == nil || got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, "Etcd has lost its quorum: 1 of 3 members left, 2 needed. Machine "+before[1].Name) ||
				!strings.Contains(got.Message, "slipway recover controlplane spire") {
				return fmt.Errorf("%+v", got)
			}
			return nil
		})
	}

	plan, err := order.Prepare(t.Context(), cluster, etcdrecovery.RecoveryOptions{})
	must(t, err)
	if plan.Survivor != before[0].Name || len(controlPlaneMachines(t, c)) != 3 || spire(t, c).Annotations[hostedv1.RecoverAnnotation] != "" {
		t.Errorf("%+v\n%v", plan, spire(t, c).Annotations)
	}
	runKilled(t, c, func() error { return order.Run(t.Context(), "default", plan) }, f.restart)
	t.Log(said.all())
	after := controlPlaneMachines(t, c)
	for _, m := range after {
		if m.Name == before[1].Name || m.Name == before[2].Name {
			t.Errorf("Machine %s is there", m.Name)
		}
	}
	plane := spire(t, c)
	if got := condition.Set(plane.Status.Conditions).Get(hostedv1.RecoveredCondition); got == nil || got.Status != metav1.ConditionTrue || !strings.Contains(got.Message, plan.ID) {
		t.Errorf("%+v", got)
	}
	eventually(t, "the request is removed", func() error {
		if got, is := spire(t, c).Annotations[hostedv1.RecoverAnnotation]; is {
			return fmt.Errorf("%s", got)
		}
		return nil
	})
}

// runKilled runs an order for the control plane, restarts the manager when it has accepted that, and waits until the control plane is whole.
func runKilled(t *testing.T, c client.Client, run func() error, restart func()) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- run() }()
	eventually(t, "the order is accepted", func() error {
		if got := spire(t, c).Annotations[hostedv1.RecoverAnnotation]; !strings.Contains(got, `"accepted":true`) {
			return fmt.Errorf("%s", got)
		}
		return nil
	})
	restart()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	untilWhole(t, c)
}

// kill ends the process as a crash does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// fleet is the cluster of examples/fleet-kubeadm.yaml, whole, with the manager that made it.
type fleet struct {
	t       *testing.T
	server  *apiserver.Server
	dir     string
	manager *process
	client  client.Client
	flags   []string
	cluster *clusterv1.Cluster
	// order is for its control plane, and what it has said.
	order etcdrecovery.Recoverer
	said  lines
}

func startTower(t *testing.T, flags ...string) *fleet {
	t.Helper()
	server := apiserver.Start(t, apiserver.Options{Objects: apiserver.CRDs(t)})
	f := &fleet{t: t, flags: flags, server: server, dir: t.TempDir(), client: newClient(t, server), cluster: &clusterv1.Cluster{}}
	f.begin()
	createKubeadmFleet(t, f.client)
	untilWhole(t, f.client)
	must(t, f.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "spire"}, f.cluster))
	f.order = etcdrecovery.Recoverer{Operation: progress.Operation{Client: f.client, Now: time.Now, Interval: 100 * time.Millisecond, Progress: f.said.add}}
	return f
}

func (f *fleet) begin() {
	f.manager = startProcessOver(f.t, f.server, impersonating(f.t, f.server), rbac.Rights{}, append([]string{"--data-dir", f.dir}, f.flags...)...)
}

// restart kills the manager as a crash does, and starts another one.
func (f *fleet) restart() {
	f.manager.kill()
	f.begin()
}

// createKubeadmFleet creates the cluster of examples/fleet-kubeadm.yaml.
func createKubeadmFleet(t *testing.T, c client.Client) {
	t.Helper()
	createFile(t, c, "default", filepath.Join("..", "..", "examples", "fleet-kubeadm.yaml"))
}

func spire(t *testing.T, c client.Client) *kubeadmv1.KubeadmControlPlane {
	t.Helper()
	plane := &kubeadmv1.KubeadmControlPlane{}
	must(t, c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "spire"}, plane))
	return plane
}

// untilWhole waits until three Machines of the control plane are ready, and etcd is healthy.
func untilWhole(t *testing.T, c client.Client) {
	t.Helper()
	eventually(t, "the control plane is whole", func() error {
		plane := spire(t, c)
		etcd := condition.Set(plane.Status.Conditions).Get(kubeadmv1.KubeadmControlPlaneEtcdClusterHealthyCondition)
		if ready := ptr.Deref(plane.Status.ReadyReplicas, 0); ready != 3 || etcd == nil || etcd.Status != metav1.ConditionTrue {
			return fmt.Errorf("%d ready, %+v", ready, etcd)
		}
		return nil
	})
}

func controlPlaneMachines(t *testing.T, c client.Client) []clusterv1.Machine {
	t.Helper()
	list := &clusterv1.MachineList{}
	must(t, c.List(t.Context(), list, client.InNamespace("default"), client.HasLabels{clusterv1.MachineControlPlaneLabel}))
	return list.Items
}

// breakEtcd makes the member on a simulated machine silent.
func breakEtcd(t *testing.T, c client.Client, name string) {
	t.Helper()
	m := &infrav1.LocalMachine{}
	must(t, c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, m))
	was := m.DeepCopy()
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[infrav1.ControlPlaneFaultsAnnotation] = "etcd-down"
	must(t, c.Patch(t.Context(), m, client.MergeFrom(was)))
}

// lines are what was said.
type lines struct {
	mu  sync.Mutex
	got []string
}

func (l *lines) add(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.got = append(l.got, text)
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string{}, l.got...)
}

// A control plane of three simulated machines with a quorum goes back to a snapshot, by the verb's library, though the manager is killed in the
// middle; one that cannot be restored changes nothing.
func TestRestoreOfMachines(t *testing.T) { // KC-19
	f := startTower(t)
	c, cluster, order, said := f.client, f.cluster, f.order, &f.said
	good, damaged := storeSnapshots(t, c, f.dir, cluster)
	restores := func(name string) etcdrecovery.RecoveryOptions {
		return etcdrecovery.RecoveryOptions{Snapshot: etcdrecovery.RestoreOptions{Name: name, Policy: "nightly"}}
	}

	plan, err := order.Prepare(t.Context(), cluster, restores(damaged))
	must(t, err)
	if err := order.Run(t.Context(), "default", plan); err == nil || !strings.Contains(err.Error(), "nothing was changed: Snapshot "+damaged+" does not match its manifest") {
		t.Errorf("a damaged snapshot: %v", err)
	}
	before := controlPlaneMachines(t, c)
	if len(before) != 3 || spire(t, c).Annotations[hostedv1.RecoverAnnotation] != "" {
		t.Errorf("%d Machines, %v", len(before), spire(t, c).Annotations)
	}
	plan, err = order.Prepare(t.Context(), cluster, restores(good))
	must(t, err)
	text := strings.Join(plan.Lines(), "\n")
	if !strings.Contains(text, "from snapshot "+good) || !strings.Contains(text, "in a quorum") {
		t.Errorf("%s", text)
	}
	runKilled(t, c, func() error { return order.Run(t.Context(), "default", plan) }, f.restart)
	t.Log(said.all())
	for _, m := range controlPlaneMachines(t, c) {
		if m.Name != plan.Survivor && slices.ContainsFunc(before, func(b clusterv1.Machine) bool { return b.Name == m.Name }) {
			t.Errorf("Machine %s was not replaced", m.Name)
		}
	}
	if got := condition.Set(spire(t, c).Status.Conditions).Get(hostedv1.RecoveredCondition); got == nil || got.Status != metav1.ConditionTrue || !strings.Contains(got.Message, "from snapshot "+good+" on Machine "+plan.Survivor) {
		t.Errorf("%+v", got)
	}
}

// storeSnapshots puts two snapshots of a Cluster into the folder of the manager, of which the second is damaged, with a policy for them.
func storeSnapshots(t *testing.T, c client.Client, dir string, cluster *clusterv1.Cluster) (good, damaged string) {
	t.Helper()
	p := &hostedv1.EtcdSnapshotPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "nightly"}, Spec: hostedv1.EtcdSnapshotPolicySpec{
		ClusterName: cluster.Name, Schedule: "0 2 1 1 *", Destination: hostedv1.SnapshotDestination{Folder: &hostedv1.SnapshotFolder{}},
	}}
	must(t, c.Create(t.Context(), p))
	to, err := snapshots.StoreSettings{Root: datadir.Dir(dir).Snapshots(), Policy: policy.Default(), Secrets: c}.Open(t.Context(), p)
	must(t, err)
	of := snapshots.Cluster{Namespace: "default", Name: cluster.Name, UID: string(cluster.UID)}
	version := controlPlaneMachines(t, c)[0].Spec.Version
	for i, name := range []*string{&good, &damaged} {
		at := time.Now().Add(time.Duration(i+1) * time.Second) // times of objects have whole seconds
		m, err := snapshots.Take(t.Context(), etcdOf(version), to, snapshots.TakeOptions{Cluster: of, Name: snapshots.Name(of.Name, at), Now: at})
		must(t, err)
		*name = m.Name
	}
	must(t, to.Write(t.Context(), "default/"+of.Name+"/"+damaged+".db", strings.NewReader("anything else"), 1<<20))
	return good, damaged
}

// etcdOf is the etcd of a version of Kubernetes.
type etcdOf string

func (v etcdOf) ReadState(context.Context) (snapshots.EtcdState, error) {
	return snapshots.EtcdState{Revision: 7, Kubernetes: string(v)}, nil
}

func (etcdOf) Snapshot(context.Context) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("of a snapshot")), nil
}

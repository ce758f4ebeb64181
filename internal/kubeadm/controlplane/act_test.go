package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/kube"
	controlplaneworkload "github.com/slipwayhq/slipway/internal/kubeadm/controlplane/workload"
	"github.com/slipwayhq/slipway/internal/kubeadm/etcd"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/testkit"
	slipwayworkload "github.com/slipwayhq/slipway/internal/workload"
)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clusterv1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme, apiextensionsv1.AddToScheme, controlplanev1.AddToScheme, bootstrapv1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	for _, kind := range []string{"FooMachine", "FooMachineTemplate"} {
		gvk := schema.GroupVersionKind{Group: "i", Version: "v1", Kind: kind}
		s.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
		metav1.AddToGroupVersion(s, gvk.GroupVersion())
		gvk.Kind += "List"
		s.AddKnownTypeWithName(gvk, &unstructured.UnstructuredList{})
	}
	return s
}

func crd(name, version string) client.Object {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"cluster.x-k8s.io/v1beta2": version}}}
}

// barePlane is a control plane as a user creates it, with the owner that the Cluster controller sets.
func barePlane(replicas int32) *controlplanev1.KubeadmControlPlane {
	p := newPlane(replicas)
	p.Finalizers, p.Labels = nil, nil
	return p
}

func managementCluster(objs ...client.Object) *fake.ClientBuilder {
	base := []client.Object{newCluster(), crd("foomachines.i", "v1"), crd("foomachinetemplates.i", "v1"), crd("kubeadmconfigs.bootstrap.cluster.x-k8s.io", "v1beta2"), object(infraTemplate)}
	return fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(append(base, objs...)...).
		WithStatusSubresource(&clusterv1.Machine{}, &controlplanev1.KubeadmControlPlane{}).WithIndex(&clusterv1.Machine{}, byCluster, clusterOf)
}

// played is a management cluster and a workload cluster behind fake clients. The test plays every other controller.
type played struct {
	t        *testing.T
	c        client.WithWatch
	workload client.Client
	ctl      *controller
	r        *reconciler.Reconciler[*controlplanev1.KubeadmControlPlane, snapshot]
	now      time.Time
	down     bool
	members  []etcd.Member
	leader   uint64
	// expiry of certificates that are read, by how many read times of each Node.
	mu     sync.Mutex // of what follows
	expiry time.Time
	read   map[string]int
	// extensions update Machines in place; nil: the gate is off. others is what other controllers do after each round.
	extensions hook.Client
	others     func()
}

func play(t *testing.T, c client.WithWatch) *played {
	p := &played{t: t, c: c, now: began.Add(time.Minute), expiry: began.AddDate(1, 0, 0), read: map[string]int{}, workload: fake.NewClientBuilder().WithScheme(newScheme()).Build()}
	p.restart()
	return p
}

// restart is what a crash leaves of the controller: nothing but the API.
func (p *played) restart() {
	p.ctl = &controller{client: p.c, live: p.c, secrets: p.c, workloads: p, members: p, certificates: p, writer: kube.NewWriter(p.c, Name), now: func() time.Time { return p.now },
		templates: kube.NewReferences(p.c, nil), clones: kube.NewReferences(p.c, nil), workers: machines.NewWorkers(p.c, p.c), settings: Settings{ConnectionGrace: 5 * time.Minute, InPlaceUpdates: p.extensions != nil}, extensions: p.extensions}
	next := 0
	p.ctl.intn = func(n int) int { next++; return (next*7 + next/5*2) % n } // as many names as there are
	p.r = &reconciler.Reconciler[*controlplanev1.KubeadmControlPlane, snapshot]{Controller: p.ctl.definition(), Client: p.c, Writer: p.ctl.writer, Now: p.ctl.now}
}

// Client implements Workloads.
func (p *played) Client(context.Context, client.ObjectKey) (client.Client, error) {
	if p.down {
		return nil, slipwayworkload.ErrNotConnected
	}
	return p.workload, nil
}

// Health implements Workloads.
func (p *played) Health(client.ObjectKey) slipwayworkload.Health {
	return slipwayworkload.Health{Connected: !p.down, LastProbeSuccess: began}
}

// Of implements controlplaneworkload.Certificates. The first time it does not answer.
func (p *played) Of(_ context.Context, s controlplaneworkload.ExpiryServer) (time.Time, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.read[s.Node]++; p.read[s.Node] == 1 {
		return time.Time{}, fault.New(fault.Unreachable, "CertificateUnknown", "nothing listens")
	}
	return p.expiry, nil
}

// Etcd implements controlplaneworkload.Members.
func (p *played) Etcd(_ context.Context, _ client.ObjectKey, nodes []string) (etcd.Cluster, error) {
	return fakeEtcd{p, nodes}, nil
}

// fakeEtcd are the members as they are asked through Nodes.
type fakeEtcd struct {
	*played
	nodes []string
}

func (e fakeEtcd) Members(context.Context) ([]etcd.Member, error) { return e.members, nil }

func (e fakeEtcd) Status(_ context.Context, node string) (etcd.Status, error) {
	at := slices.IndexFunc(e.members, func(m etcd.Member) bool { return m.Name == node })
	if at < 0 || !slices.Contains(e.nodes, node) {
		return etcd.Status{}, fault.New(fault.Unreachable, "EtcdMemberUnreachable", "the etcd member on Node %s does not answer", node)
	}
	return etcd.Status{ID: e.members[at].ID, ClusterID: 1, Leader: e.leader, Members: e.members}, nil
}

func (e fakeEtcd) MoveLeader(_ context.Context, to uint64) error {
	at := slices.IndexFunc(e.members, func(m etcd.Member) bool { return m.ID == e.leader })
	if !slices.Contains(e.nodes, e.members[at].Name) {
		return fault.New(fault.Unreachable, "EtcdLeaderUnknown", "the leader was not asked")
	}
	e.leader = to
	e.played.leader = to
	return nil
}

func (e fakeEtcd) RemoveMember(_ context.Context, id uint64) error {
	if id == e.played.leader {
		return errors.New("the leader is removed")
	}
	e.played.members = slices.DeleteFunc(slices.Clone(e.members), func(m etcd.Member) bool { return m.ID == id })
	return nil
}

func (e fakeEtcd) Close() error { return nil }

func (p *played) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// twice repeats what is the test's own write and fails by injection.
func (p *played) twice(f func() error) {
	p.t.Helper()
	err := f()
	if errors.Is(err, testkit.ErrInjected) {
		err = f()
	}
	p.must(client.IgnoreNotFound(err))
}

func (p *played) machines() []clusterv1.Machine {
	p.t.Helper()
	list := &clusterv1.MachineList{}
	p.must(p.c.List(p.t.Context(), list))
	return list.Items
}

func (p *played) plane() *controlplanev1.KubeadmControlPlane {
	p.t.Helper()
	plane := &controlplanev1.KubeadmControlPlane{}
	p.must(p.c.Get(p.t.Context(), client.ObjectKey{Namespace: "ns", Name: "kcp"}, plane))
	return plane
}

// change patches the control plane.
func (p *played) change(f func(*controlplanev1.KubeadmControlPlane)) {
	p.t.Helper()
	plane := p.plane()
	before := plane.DeepCopy()
	f(plane)
	plane.Generation++
	p.twice(func() error { return p.c.Patch(p.t.Context(), plane.DeepCopy(), client.MergeFrom(before)) })
}

// round reconciles once, then lets the others work.
func (p *played) round() error {
	_, err := p.r.Reconcile(p.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "kcp"}})
	p.now = p.now.Add(20 * time.Second)
	for _, m := range p.machines() {
		switch {
		case !m.DeletionTimestamp.IsZero():
			p.takeDown(&m)
		case !m.Status.NodeRef.IsDefined():
			p.boot(&m)
		}
	}
	if p.others != nil {
		p.others()
	}
	return err
}

// boot makes a Machine a Node.
func (p *played) boot(m *clusterv1.Machine) {
	p.t.Helper()
	ctx, name := p.t.Context(), "n-"+m.Name
	if err := p.workload.Get(ctx, client.ObjectKey{Name: name}, &corev1.Node{}); apierrors.IsNotFound(err) {
		for _, o := range leftByKubeadm() {
			p.must(client.IgnoreAlreadyExists(p.workload.Create(ctx, o)))
		}
		p.must(p.workload.Create(ctx, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		}))
		for _, component := range []string{controlplaneworkload.APIServer, controlplaneworkload.ControllerManager, controlplaneworkload.Scheduler, controlplaneworkload.EtcdPod} {
			p.must(p.workload.Create(ctx, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: component + "-" + name, Labels: map[string]string{"tier": "control-plane"}},
				Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
			}))
		}
		id := uint64(1)
		for _, member := range p.members {
			id = max(id, member.ID+1)
		}
		p.members = append(slices.Clone(p.members), etcd.Member{ID: id, Name: name})
		if p.leader == 0 {
			p.leader = id
		}
	}
	config := &bootstrapv1.KubeadmConfig{}
	p.must(p.c.Get(ctx, client.ObjectKeyFromObject(m), config))
	if config.Status.DataSecretName == "" { // an object that was only applied has no resource version in this client
		config.Status.DataSecretName = m.Name
		p.twice(func() error { return p.c.Update(ctx, config.DeepCopy()) })
	}
	before := m.DeepCopy()
	m.Status.NodeRef.Name = name
	p.twice(func() error { return p.c.Status().Patch(ctx, m.DeepCopy(), client.MergeFrom(before)) })
}

// takeDown plays the Machine controller with a Machine that is deleted.
func (p *played) takeDown(m *clusterv1.Machine) {
	p.t.Helper()
	ctx, before := p.t.Context(), m.DeepCopy()
	if HasHook(m) {
		if condition.Set(m.Status.Conditions).IsTrue(clusterv1.DeletingCondition) {
			return
		}
		set(m, metav1.Condition{Type: clusterv1.DeletingCondition, Status: metav1.ConditionTrue, Reason: clusterv1.MachineDeletingWaitingForPreTerminateHookReason})
		p.twice(func() error { return p.c.Status().Patch(ctx, m.DeepCopy(), client.MergeFrom(before)) })
		return
	}
	name := m.Status.NodeRef.Name
	p.must(client.IgnoreNotFound(p.workload.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})))
	for _, component := range []string{controlplaneworkload.APIServer, controlplaneworkload.ControllerManager, controlplaneworkload.Scheduler, controlplaneworkload.EtcdPod} {
		p.must(client.IgnoreNotFound(p.workload.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: component + "-" + name}})))
	}
	infra := &unstructured.Unstructured{}
	infra.SetGroupVersionKind(schema.GroupVersionKind{Group: "i", Version: "v1", Kind: "FooMachine"})
	infra.SetNamespace("ns")
	infra.SetName(m.Name)
	p.twice(func() error { return p.c.Delete(ctx, infra) })
	p.twice(func() error {
		return p.c.Delete(ctx, &bootstrapv1.KubeadmConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: m.Name}})
	})
	m.Finalizers = nil
	p.twice(func() error { return p.c.Patch(ctx, m.DeepCopy(), client.MergeFrom(before)) })
}

// settle goes on until what is expected is the case.
func (p *played) settle(what string, expected func() string) {
	p.t.Helper()
	problem := ""
	var last error
	for range 60 {
		last = p.round()
		if problem = expected(); problem == "" {
			return
		}
	}
	p.t.Fatalf("%s: %s; last error %v", what, problem, last)
}

// whole says what is missing of so many Machines that are up to date and healthy.
func (p *played) whole(n int) func() string {
	return func() string {
		plane := &controlplanev1.KubeadmControlPlane{}
		if err := p.c.Get(p.t.Context(), client.ObjectKey{Namespace: "ns", Name: "kcp"}, plane); err != nil {
			return err.Error()
		}
		conditions := condition.Set(plane.Status.Conditions)
		infra := &unstructured.UnstructuredList{}
		infra.SetGroupVersionKind(schema.GroupVersionKind{Group: "i", Version: "v1", Kind: "FooMachineList"})
		p.must(p.c.List(p.t.Context(), infra))
		configs := &bootstrapv1.KubeadmConfigList{}
		p.must(p.c.List(p.t.Context(), configs))
		switch machines := p.machines(); {
		case len(machines) != n, len(p.members) != n, len(infra.Items) != n, len(configs.Items) != n:
			return fmt.Sprintf("%d Machines, %d members, %d FooMachines, %d KubeadmConfigs; %v", len(machines), len(p.members), len(infra.Items), len(configs.Items), conditions)
		case !conditions.IsTrue("Available"), !conditions.IsFalse("RollingOut"), !conditions.IsFalse("ScalingUp"), !conditions.IsFalse("ScalingDown"),
			!conditions.IsTrue("EtcdClusterHealthy"), !conditions.IsTrue("ControlPlaneComponentsHealthy"):
			return fmt.Sprintf("conditions %v", conditions)
		case *plane.Status.Replicas != int32(n), *plane.Status.UpToDateReplicas != int32(n):
			return fmt.Sprintf("status %+v", plane.Status)
		}
		return ""
	}
}

// addons says what of the workload cluster is not of a version.
func (p *played) addons(version string) string {
	p.t.Helper()
	key := client.ObjectKey{Namespace: "kube-system", Name: "kube-proxy"}
	proxy, config := &appsv1.DaemonSet{}, &corev1.ConfigMap{}
	p.must(p.workload.Get(p.t.Context(), key, proxy))
	key.Name = "kubeadm-config"
	p.must(p.workload.Get(p.t.Context(), key, config))
	image, c := proxy.Spec.Template.Spec.Containers[0].Image, condition.Set(p.plane().Status.Conditions).Get("AddonsUpToDate")
	if image != "example.org/kube-proxy:"+version || !strings.Contains(config.Data["ClusterConfiguration"], "kubernetesVersion: "+version) || c == nil || c.Status != metav1.ConditionTrue {
		return fmt.Sprintf("%s, %s, %+v", image, config.Data, c)
	}
	return ""
}

// Every write fails once, and each run ends with the same: one that creates, scales, rolls out, and deletes.
func TestEveryWriteFailsOnce(t *testing.T) { // KC-01, KC-02, KC-03, KC-04, KC-05, KC-06, KC-11, KC-17, KC-31, KC-32, CP-05, CP-06, CP-07, KC-21, KC-22
	plane := barePlane(1)
	plane.Spec.MachineTemplate.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "Foo"}}
	plane.Spec.MachineTemplate.Spec.Taints = []clusterv1.MachineTaint{{Key: "k", Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationAlways}}
	testkit.EveryWrite(t, func() *fake.ClientBuilder { return managementCluster(plane.DeepCopy()) }, func(t *testing.T, c client.WithWatch) {
		p := play(t, c)
		p.settle("one Machine", p.whole(1))
		m := p.machines()[0]
		if len(m.Spec.ReadinessGates) != 7 || len(m.Spec.Taints) != 1 || !HasHook(&m) || m.Labels[clusterv1.MachineControlPlaneNameLabel] != "kcp" {
			t.Errorf("Machine %+v", m)
		}
		p.change(func(plane *controlplanev1.KubeadmControlPlane) { plane.Spec.Version = "v1.36.3" })
		p.settle("upgraded", func() string {
			if got := p.machines()[0].Spec.Version; got != "v1.36.3" {
				return got
			}
			if problem := p.addons("v1.36.3"); problem != "" {
				return problem
			}
			return p.whole(1)()
		})
		p.twice(func() error { return p.c.Delete(t.Context(), p.plane()) })
		p.settle("deleted", func() string {
			err := p.c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "kcp"}, &controlplanev1.KubeadmControlPlane{})
			if apierrors.IsNotFound(err) && len(p.machines()) == 0 {
				return ""
			}
			return fmt.Sprintf("%v, %d Machines", err, len(p.machines()))
		})
	})
}

// A control plane of three: what follows in place does so without a rollout; a restart of the controller at each step changes nothing.
func TestInPlaceAndRestart(t *testing.T) { // KC-10, CP-17, CP-18
	p := play(t, managementCluster(barePlane(3)).WithReturnManagedFields().Build())
	p.settle("three Machines", func() string {
		p.restart()
		return p.whole(3)()
	})
	before := p.machines()
	p.change(func(plane *controlplanev1.KubeadmControlPlane) {
		plane.Spec.MachineTemplate.ObjectMeta.Labels = map[string]string{"a": "b"}
		plane.Spec.MachineTemplate.Spec.Deletion.NodeDrainTimeoutSeconds = new(int32(7))
	})
	p.settle("in place", func() string {
		for i, m := range p.machines() {
			if m.Name != before[i].Name || m.Labels["a"] != "b" || m.Spec.Deletion.NodeDrainTimeoutSeconds == nil || !HasHook(&m) {
				return fmt.Sprintf("Machine %+v", m.ObjectMeta)
			}
			config := &bootstrapv1.KubeadmConfig{}
			p.must(p.c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: m.Name}, config))
			delete(config.Annotations, clusterv1.MachineCertificatesExpiryDateAnnotation)
			if config.Labels["a"] != "b" || len(config.Annotations) > 0 {
				return fmt.Sprintf("KubeadmConfig %+v", config.ObjectMeta)
			}
		}
		return p.whole(3)()
	})
}

// KubeadmConfigs say until when the certificates of their Machines are valid, which are read once; those that expire soon are replaced.
func TestCertificateExpiry(t *testing.T) { // KC-24
	p := play(t, managementCluster(barePlane(3)).WithReturnManagedFields().Build())
	says := func() (out []string) {
		configs := &bootstrapv1.KubeadmConfigList{}
		p.must(p.c.List(t.Context(), configs))
		for _, c := range configs.Items {
			out = append(out, c.Annotations[clusterv1.MachineCertificatesExpiryDateAnnotation])
		}
		return out
	}
	allSay := func(at time.Time) func() string {
		return func() string {
			want := at.UTC().Format(time.RFC3339)
			if got := says(); !slices.Equal(got, []string{want, want, want}) {
				return fmt.Sprintf("got %v, want %s", got, want)
			}
			return p.whole(3)()
		}
	}
	soon := began.AddDate(0, 0, 20)
	p.expiry = soon
	p.settle("three Machines", allSay(soon))
	for range 20 {
		p.must(p.round())
	}
	for node, times := range p.read {
		if times != 2 { // the one that fails, and the other
			t.Errorf("Node %s was asked %d times", node, times)
		}
	}
	later := began.AddDate(1, 0, 0)
	p.expiry = later
	p.change(func(plane *controlplanev1.KubeadmControlPlane) { plane.Spec.Rollout.Before.CertificatesExpiryDays = 30 })
	p.settle("replaced", allSay(later))
}

// Before the first Machine of another version or configuration joins, kubeadm's configuration follows; kube-proxy does once all Machines are up to
// date. What is skipped, missing or broken is said.
func TestUpgradeOfTheWorkloadCluster(t *testing.T) { // KC-21, KC-22, KC-23
	p := play(t, managementCluster(barePlane(3)).WithReturnManagedFields().Build())
	p.settle("three Machines", p.whole(3))
	config := func() string {
		got := &corev1.ConfigMap{}
		p.must(p.workload.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "kubeadm-config"}, got))
		return got.Data["ClusterConfiguration"]
	}
	p.change(func(plane *controlplanev1.KubeadmControlPlane) {
		plane.Spec.Version = "v1.36.3"
		plane.Spec.KubeadmConfigSpec.ClusterConfiguration.APIServer.CertSANs = []string{"a.b"}
	})
	p.settle("upgraded", func() string {
		proxy := &appsv1.DaemonSet{}
		p.must(p.workload.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "kube-proxy"}, proxy))
		isNew := false
		for _, m := range p.machines() {
			isNew = isNew || m.Spec.Version == "v1.36.3"
			if m.Spec.Version != "v1.36.3" && proxy.Spec.Template.Spec.Containers[0].Image != "example.org/kube-proxy:v1.35.4" {
				t.Fatal("kube-proxy is newer than an API server")
			}
		}
		if isNew && !(strings.Contains(config(), "v1.36.3") && strings.Contains(config(), "a.b")) {
			t.Fatalf("a Machine joins with\n%s", config())
		}
		if problem := p.addons("v1.36.3"); problem != "" {
			return fmt.Sprint(problem, len(p.machines()), p.plane().Status.Conditions)
		}
		return p.whole(3)()
	})
	says := condition.Set(p.plane().Status.Conditions).Get("AddonsUpToDate").Message
	if says != `kube-proxy has image "example.org/kube-proxy:v1.36.3"; CoreDNS has image "example.org/coredns:v1.12.1"` {
		t.Errorf("says %q", says)
	}
	p.change(func(plane *controlplanev1.KubeadmControlPlane) {
		plane.Annotations = map[string]string{controlplanev1.SkipKubeProxyAnnotation: ""}
		plane.Spec.KubeadmConfigSpec.ClusterConfiguration.DNS.ImageTag = "v1.11.0"
	})
	p.settle("blocked", func() string {
		c := condition.Set(p.plane().Status.Conditions).Get("AddonsUpToDate")
		if c.Reason != "UpgradeBlocked" || c.Message != "CoreDNS is not upgraded: version v1.11.0 is older than v1.12.1, which runs: its Corefile cannot be migrated back" {
			return fmt.Sprint(c)
		}
		return ""
	})
	broken := &corev1.ConfigMap{}
	p.must(p.workload.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "kubeadm-config"}, broken))
	broken.Data["ClusterConfiguration"] = "apiVersion: x"
	p.must(p.workload.Update(t.Context(), broken))
	p.change(func(plane *controlplanev1.KubeadmControlPlane) {
		plane.Spec.KubeadmConfigSpec.PreKubeadmCommands = []string{"true"}
	})
	p.settle("no Machine can join", func() string {
		c := condition.Set(p.plane().Status.Conditions).Get("RollingOut")
		if len(p.machines()) != 3 || c == nil || !strings.Contains(c.Message, `ConfigMap kubeadm-config of the workload cluster cannot be changed: The ClusterConfiguration has API version "x"`) {
			return fmt.Sprint(c)
		}
		return ""
	})
}

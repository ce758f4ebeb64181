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
	slipwayworkload "github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/test/testkit"
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

// Expiry implements controlplaneworkload.Certificates. The first time it does not respond.
func (p *played) Expiry(_ context.Context, s controlplaneworkload.ExpiryServer) (time.Time, error) {
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
		return etcd.Status{}, fault.New(fault.Unreachable, "EtcdMemberUnreachable", "the etcd member on Node %s does not respond", node)
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
		for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"} {
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
	if hasHook(m) {
		if condition.Set(m.Status.Conditions).IsTrue(clusterv1.DeletingCondition) {
			return
		}
		set(m, metav1.Condition{Type: clusterv1.DeletingCondition, Status: metav1.ConditionTrue, Reason: clusterv1.MachineDeletingWaitingForPreTerminateHookReason})
		p.twice(func() error { return p.c.Status().Patch(ctx, m.DeepCopy(), client.MergeFrom(before)) })
		return
	}
	name := m.Status.NodeRef.Name
	p.must(client.IgnoreNotFound(p.workload.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})))
	for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"} {
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

package simulated_test

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
	localsimulated "github.com/slipwayhq/slipway/internal/local/simulated"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/simulated"
)

// plane is a cluster whose control plane runs on simulated machines.
type plane struct {
	t       *testing.T
	server  *simulated.Server
	backend backend.Backend
	files   map[string][]byte
	ca      pki.Pair
	at      string
	ran     bool // the machines ran before
	end     func()
}

func newPlane(t *testing.T, dir string, before *plane) *plane {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &plane{t: t, server: simulated.New(ctx, simulated.Config{Dir: dir, Log: logr.Discard()})}
	p.end = func() {
		cancel()
		<-p.server.Ended()
	}
	t.Cleanup(p.end)
	p.backend = localsimulated.WrapFaulty(localsimulated.New(p.server, fake.NewClientBuilder().WithScheme(newScheme(t)).Build(), time.Now), time.Now)
	if before != nil {
		p.files, p.ca, p.at = before.files, before.ca, before.at
		return p
	}
	ca, err := pki.NewAuthority(pki.Authority{Name: "kubernetes"}, time.Now())
	p.must(err)
	etcd, err := pki.NewAuthority(pki.Authority{Name: "etcd-ca"}, time.Now())
	p.must(err)
	p.ca = ca
	p.files = map[string][]byte{
		"/etc/kubernetes/pki/ca.crt": ca.CertPEM, "/etc/kubernetes/pki/ca.key": ca.KeyPEM,
		"/etc/kubernetes/pki/etcd/ca.crt": etcd.CertPEM, "/etc/kubernetes/pki/etcd/ca.key": etcd.KeyPEM,
		"/run/kubeadm/kubeadm.yaml": []byte("apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nclusterName: c\n---\napiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n"),
	}
	offered, err := p.backend.Balancers.ReserveEndpoint(ctx, backend.Ref{Object: types.NamespacedName{Namespace: "ns", Name: "lc"}, Cluster: "c"}, policy.Default())
	p.must(err)
	p.at = net.JoinHostPort(offered.Addr().String(), strconv.Itoa(int(offered.Port())))
	return p
}

func (p *plane) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func ref(name string) backend.Ref {
	return backend.Ref{Object: types.NamespacedName{Namespace: "ns", Name: name}, Name: "m-" + name, Cluster: "c", ControlPlane: true}
}

func (p *plane) create(name, version string, annotations map[string]string) error {
	spec := backend.MachineSpec{
		Owner: backend.Owner{Cluster: "c", Object: ref(name).Object, UID: types.UID(name)}, Name: "m-" + name, Hostname: name, ProviderID: "slipway:///m-" + name,
		Version: version, ControlPlane: true, ProvisionedBefore: p.ran, Endpoint: p.at, Policy: policy.Default(),
		Files: func(context.Context) (map[string][]byte, error) { return p.files, nil },
	}
	_, err := p.backend.Faults(annotations).Machines.Create(p.t.Context(), spec)
	return err
}

func (p *plane) client() kubernetes.Interface {
	p.t.Helper()
	leaf, err := p.ca.Issue(pki.Leaf{User: "kubernetes-admin", Groups: []string{"kubeadm:cluster-admins"}, Client: true}, time.Now())
	p.must(err)
	c, err := kubernetes.NewForConfig(&rest.Config{Host: "https://" + p.at, Timeout: 20 * time.Second, TLSClientConfig: rest.TLSClientConfig{CAData: p.ca.CertPEM, CertData: leaf.CertPEM, KeyData: leaf.KeyPEM}})
	p.must(err)
	return c
}

func (p *plane) ready(pod string) bool {
	got, err := p.client().CoreV1().Pods("kube-system").Get(p.t.Context(), pod, metav1.GetOptions{})
	if err != nil {
		return false
	}
	for _, c := range got.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (p *plane) until(what string, done func() bool) {
	p.t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline.C:
			p.t.Fatalf("not within a minute: %s", what)
		}
	}
}

// The first machine makes the cluster as kubeadm init does, others join it; it survives this program, and goes with the last.
func TestControlPlaneMachines(t *testing.T) {
	dir := t.TempDir()
	p := newPlane(t, dir, nil)
	if m, err := p.backend.Machines.Inspect(t.Context(), ref("cp-1")); err != nil || m.State != backend.Absent {
		t.Fatalf("before anything: %+v, %v", m, err)
	}
	init := p.files["/run/kubeadm/kubeadm.yaml"]
	p.files["/run/kubeadm/kubeadm.yaml"] = []byte("kind: JoinConfiguration\n")
	if err := p.create("cp-1", "v1.35.4", nil); fault.KindOf(err) != fault.Transient {
		t.Errorf("one that joins made the cluster: %v", err)
	}
	p.files["/run/kubeadm/kubeadm.yaml"] = init
	for _, name := range []string{"cp-1", "cp-2", "cp-3"} {
		p.must(p.create(name, "v1.35.4", nil))
	}
	c, ctx := p.client(), t.Context()
	config, err := c.CoreV1().ConfigMaps("kube-system").Get(ctx, "kubeadm-config", metav1.GetOptions{})
	if err != nil || !strings.Contains(config.Data["ClusterConfiguration"], "clusterName: c") || strings.Contains(config.Data["ClusterConfiguration"], "InitConfiguration") {
		t.Errorf("kubeadm-config: %v, %v", config, err)
	}
	node, err := c.CoreV1().Nodes().Get(ctx, "cp-2", metav1.GetOptions{})
	if err != nil || len(node.Spec.Taints) != 1 || node.Spec.Taints[0].Key != "node-role.kubernetes.io/control-plane" {
		t.Errorf("a control plane node: %+v, %v", node, err)
	}
	for _, pod := range []string{"etcd-cp-1", "kube-apiserver-cp-2", "kube-controller-manager-cp-3", "kube-scheduler-cp-3"} {
		p.until(pod+" is ready", func() bool { return p.ready(pod) })
	}
	members := p.server.Etcd(types.NamespacedName{Namespace: "ns", Name: "c"})
	if n := len(members.Members()); n != 3 || members.Leader() != "cp-1" {
		t.Errorf("%d members, led by %s", n, members.Leader())
	}
	p.must(p.create("cp-4", "v1.36.3", nil))
	if v, err := c.Discovery().ServerVersion(); err != nil || v.GitVersion != "v1.36.3" {
		t.Errorf("after a machine of another version: %v, %v", v, err)
	}
	p.end()
	p = newPlane(t, dir, p)
	p.must(p.create("cp-2", "v1.36.3", nil))
	if m, err := p.backend.Machines.Inspect(t.Context(), ref("cp-3")); err != nil || m.State != backend.Running {
		t.Errorf("after a restart: %+v, %v", m, err)
	}
	for i, name := range []string{"cp-1", "cp-2", "cp-3", "cp-4"} {
		if _, running, err := p.backend.Balancers.FindBalancer(ctx, backend.Ref{Object: types.NamespacedName{Namespace: "ns", Name: "lc"}, Cluster: "c"}); err != nil || !running {
			t.Errorf("the cluster went with %d machines left: %v", 4-i, err)
		}
		p.must(p.backend.Machines.Delete(ctx, ref(name)))
		_, err := p.client().CoreV1().Nodes().Get(ctx, "cp-4", metav1.GetOptions{})
		if quorum := i < 1; (err == nil) != quorum {
			t.Errorf("the API with %d of 4 members: %v", 3-i, err)
		}
	}
	if _, running, err := p.backend.Balancers.FindBalancer(ctx, backend.Ref{Object: types.NamespacedName{Namespace: "ns", Name: "lc"}, Cluster: "c"}); err != nil || running {
		t.Errorf("it outlives its machines: %v", err)
	}
}

// After a move or a restore the simulated control plane is gone, and the machine that made it may have been replaced long before:
// those that ran make it, those that never did join it.
func TestControlPlaneMadeByThoseWhoJoined(t *testing.T) {
	p := newPlane(t, t.TempDir(), nil)
	p.files["/run/kubeadm/kubeadm.yaml"] = []byte("kind: JoinConfiguration\n")
	if err := p.create("cp-9", "v1.36.3", nil); fault.KindOf(err) != fault.Transient {
		t.Fatalf("one that never ran made the cluster: %v", err)
	}
	p.ran = true
	p.must(p.create("cp-2", "v1.36.3", nil))
	p.must(p.create("cp-3", "v1.36.3", nil))
	p.ran = false
	p.must(p.create("cp-9", "v1.36.3", nil))
	config, err := p.client().CoreV1().ConfigMaps("kube-system").Get(t.Context(), "kubeadm-config", metav1.GetOptions{})
	if err != nil || !strings.Contains(config.Data["ClusterConfiguration"], "kind: ClusterConfiguration") || !strings.Contains(config.Data["ClusterConfiguration"], "kubernetesVersion: v1.36.3") {
		t.Errorf("kubeadm-config: %v, %v", config, err)
	}
	if members := p.server.Etcd(types.NamespacedName{Namespace: "ns", Name: "c"}).Members(); len(members) != 3 {
		t.Errorf("got %d members", len(members))
	}
}

// After a move no LocalCluster is left, and no finalizer has removed the control plane: its port is for the other management cluster.
func TestForget(t *testing.T) {
	p := newPlane(t, t.TempDir(), nil)
	p.must(p.create("cp-1", "v1.36.3", nil))
	lc, other := types.NamespacedName{Namespace: "ns", Name: "lc"}, types.NamespacedName{Namespace: "ns", Name: "other"}
	_, running, err := p.backend.Balancers.FindBalancer(t.Context(), backend.Ref{Object: other, Cluster: "c"})
	p.must(err)
	for _, gone := range []types.NamespacedName{{Namespace: "ns", Name: "unknown"}, other} {
		p.must(p.backend.DeleteState(gone))
		if _, err := p.client().Discovery().ServerVersion(); err != nil || !running {
			t.Errorf("without %s: %v, %v", gone, running, err)
		}
	}
	p.must(p.backend.DeleteState(lc))
	p.must(p.backend.DeleteState(lc))
	listener, err := net.Listen("tcp", p.at)
	if err != nil {
		t.Fatalf("the port is kept: %v", err)
	}
	p.must(listener.Close())
}

// A manager that started while the LocalCluster was paused, as in the middle of a move, removes the state when the LocalCluster is gone, too.
func TestForgetAfterRestart(t *testing.T) {
	dir := t.TempDir()
	first := newPlane(t, dir, nil)
	first.must(first.create("cp-1", "v1.36.3", nil))
	first.end()
	second := newPlane(t, dir, first)
	lc := backend.Ref{Object: types.NamespacedName{Namespace: "ns", Name: "lc"}, Cluster: "c"}
	name := simulated.MachineControlPlaneName(types.NamespacedName{Namespace: "ns", Name: "c"})
	if !second.server.Status(name).Exists {
		t.Fatal("the state is not there after the restart")
	}
	second.backend.RecordCluster(lc)
	second.must(second.backend.DeleteState(lc.Object))
	if second.server.Status(name).Exists {
		t.Error("the state is left behind")
	}
}

// A tenant chooses neither where this program listens, nor how many control planes it has; a port that was never used is given back.
func TestControlPlaneLimits(t *testing.T) {
	p := newPlane(t, t.TempDir(), nil)
	own := p.at
	for _, at := range []string{"0.0.0.0:443", "0.0.0.0:12345", "127.0.0.1:6440", "127.0.0.2:12345", "[::1]:12345", "localhost:12345", "169.254.1.1:12345"} {
		p.at = at
		if err := p.create("cp-1", "v1.36.3", nil); fault.As(err) == nil || fault.As(err).Reason != "EndpointNotAllowed" {
			t.Errorf("%s: %v", at, err)
		}
	}
	p.at = own
	p.must(p.create("cp-1", "v1.36.3", nil))
	one := policy.Default()
	one.Maxima.SimulatedControlPlanes = policy.Maximum{Namespace: 2}
	other := func(name string) backend.Ref {
		return backend.Ref{Object: types.NamespacedName{Namespace: "ns", Name: name}, Cluster: name}
	}
	first, err := p.backend.Balancers.ReserveEndpoint(t.Context(), other("d"), one)
	p.must(err)
	if again, err := p.backend.Balancers.ReserveEndpoint(t.Context(), other("d"), one); err != nil || again != first {
		t.Errorf("asked again: %v, %v; want %v", again, err, first)
	}
	if _, err := p.backend.Balancers.ReserveEndpoint(t.Context(), other("e"), one); fault.As(err) == nil || fault.As(err).Reason != "DeniedByPolicy" {
		t.Errorf("one more than is allowed: %v", err)
	}
	if _, found, err := p.backend.Balancers.FindBalancer(t.Context(), other("d")); err != nil || !found {
		t.Errorf("a port that was given out is forgotten: %v", err)
	}
	p.must(p.backend.Balancers.DeleteBalancer(t.Context(), other("d")))
	if _, err := p.backend.Balancers.ReserveEndpoint(t.Context(), other("e"), one); err != nil {
		t.Errorf("after the other was given back: %v", err)
	}
}

// Annotations make members and static Pods fail, and well again.
func TestControlPlaneFaults(t *testing.T) {
	p := newPlane(t, t.TempDir(), nil)
	for _, name := range []string{"cp-1", "cp-2", "cp-3"} {
		p.must(p.create(name, "v1.36.3", nil))
		p.until("Pods run", func() bool { return p.ready("kube-apiserver-"+name) && p.ready("etcd-"+name) })
	}
	members := p.server.Etcd(types.NamespacedName{Namespace: "ns", Name: "c"})
	p.must(p.create("cp-1", "v1.36.3", map[string]string{infrav1.ControlPlaneFaultsAnnotation: "etcd-down,pod-down=kube-scheduler"}))
	if members.Leader() == "cp-1" || !members.HasQuorum() || p.ready("kube-scheduler-cp-1") || p.ready("etcd-cp-1") || !p.ready("kube-apiserver-cp-1") {
		t.Errorf("led by %s: %+v", members.Leader(), members.Members())
	}
	p.must(p.create("cp-2", "v1.36.3", map[string]string{infrav1.ControlPlaneFaultsAnnotation: "etcd-alarm=NOSPACE"}))
	p.must(p.create("cp-1", "v1.36.3", nil))
	if m := members.Members(); m[0].Stopped || len(m[1].Alarms) != 1 || !p.ready("kube-scheduler-cp-1") || !p.ready("etcd-cp-1") {
		t.Errorf("got %+v", m)
	}
	if err := p.create("cp-3", "v1.36.3", map[string]string{infrav1.ControlPlaneFaultsAnnotation: "etcd-explodes"}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a fault that there is not: %v", err)
	}
}

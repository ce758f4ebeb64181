package hosts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
	"github.com/slipwayhq/slipway/test/sshtest"
)

const claimID = "aaaaaaaaaaaaaaaaaaaaaaaaaa"

// rebootWorld is a host that is a Node, in a management cluster and a workload cluster in memory.
type rebootWorld struct {
	world
	workload client.WithWatch
	host     *infrav1.SSHHost

	mu sync.Mutex
	// outages is the number of requests to the workload cluster that fail after the reboot.
	outages int
	// log has what happened, in order.
	log []string
}

func (w *rebootWorld) note(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, text)
}

// fails reports whether the API server of the workload cluster does not respond now.
func (w *rebootWorld) fails() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outages > 0 && slices.Contains(w.log, "reboot") {
		w.outages--
		return errors.New("connection refused")
	}
	return nil
}

var heartbeat = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newRebootWorld(t *testing.T) *rebootWorld {
	t.Helper()
	w := &rebootWorld{world: newWorld(t, "")}
	target := w.server.Target()
	w.host = &infrav1.SSHHost{ObjectMeta: metav1.ObjectMeta{Namespace: "inventory", Name: "h1"}}
	w.host.Spec.SSHServer = infrav1.SSHServer{Address: target.Address, Port: int32(target.Port), User: "root", HostKeys: target.HostKeys, CredentialsRef: infrav1.SSHCredentialsReference{Name: "key"}}
	w.host.Status.Claim = &infrav1.SSHHostClaim{Namespace: "team-a", Name: "m", ClaimID: claimID}
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "m"}}
	machine.Spec.ClusterName, machine.Spec.ProviderID, machine.Status.NodeRef.Name = "c", "ssh://"+claimID, "n1"
	scheme, err := management.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	w.connection.Client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&infrav1.SSHHost{}).WithObjects(
		w.host, machine, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "c"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "inventory", Name: "key"}, Data: map[string][]byte{"ssh-privatekey": target.PrivateKey}},
	).Build()
	w.workload = w.newWorkload(t)
	w.simulate()
	return w
}

// newWorkload returns the workload cluster, with a Node that runs a Pod.
func (w *rebootWorld) newWorkload(t *testing.T) client.WithWatch {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(heartbeat)}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "r", Controller: ptr.To(true)}}}}
	pod.Spec.NodeName = "n1"
	scheme, err := management.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(node, pod).WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).Build()
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := w.fails(); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, _ string, o, sub client.Object, _ ...client.SubResourceCreateOption) error {
			if _, evicts := sub.(*policyv1.Eviction); evicts {
				w.note("evict " + o.GetName())
			}
			return c.Delete(ctx, o)
		},
	})
}

// simulate answers the scripts of the host: after a reboot, the connections end, the boot ID is another one, and the kubelet has
// reported again.
func (w *rebootWorld) simulate() {
	boot := 1
	w.server.Handle("boot-id", func(sshtest.Call) sshtest.Result { return sshtest.Result{Output: fmt.Sprintf("boot-%d\n", boot)} })
	w.server.Handle("reboot", func(sshtest.Call) sshtest.Result {
		node := &corev1.Node{}
		if err := w.workload.Get(context.Background(), client.ObjectKey{Name: "n1"}, node); err == nil {
			w.note(fmt.Sprintf("cordoned: %t", node.Spec.Unschedulable))
			node.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(heartbeat.Add(time.Minute))
			_ = w.workload.Status().Update(context.Background(), node)
		}
		m := &clusterv1.Machine{}
		if err := w.connection.Client.Get(context.Background(), client.ObjectKey{Namespace: "team-a", Name: "m"}, m); err == nil {
			_, skips := m.Annotations[clusterv1.MachineSkipRemediationAnnotation]
			w.note(fmt.Sprintf("remediation prevented: %t", skips))
		}
		h := &infrav1.SSHHost{}
		if err := w.connection.Client.Get(context.Background(), client.ObjectKeyFromObject(w.host), h); err == nil {
			w.note(fmt.Sprintf("maintenance: %t", ptr.Deref(h.Spec.Maintenance, false)))
		}
		w.note("reboot")
		boot++
		return sshtest.Result{}
	})
}

func (w *rebootWorld) read(t *testing.T) *infrav1.SSHHost {
	t.Helper()
	host, err := getHost(t.Context(), w.connection, "h1")
	if err != nil {
		t.Fatal(err)
	}
	return host
}

func (w *rebootWorld) reboot(t *testing.T) error {
	t.Helper()
	return w.rebootHost(t, w.read(t))
}

func (w *rebootWorld) rebootHost(t *testing.T, host *infrav1.SSHHost) error {
	t.Helper()
	pool := remote.NewPool(remote.Limits{})
	defer pool.Close()
	r := reboot{
		env: term.Env{Err: w.errs, Now: time.Now}, connection: w.connection, pool: pool, host: host, interval: time.Millisecond,
		workload: func(context.Context, client.Client, *clusterv1.Machine) (client.Client, error) {
			return w.workload, nil
		},
	}
	return r.runWithin(t.Context(), time.Minute)
}

func (w *rebootWorld) node(t *testing.T) *corev1.Node {
	t.Helper()
	node := &corev1.Node{}
	if err := w.workload.Get(t.Context(), client.ObjectKey{Name: "n1"}, node); err != nil {
		t.Fatal(err)
	}
	return node
}

func (w *rebootWorld) machine(t *testing.T) *clusterv1.Machine {
	t.Helper()
	m := &clusterv1.Machine{}
	if err := w.connection.Client.Get(t.Context(), client.ObjectKey{Namespace: "team-a", Name: "m"}, m); err != nil {
		t.Fatal(err)
	}
	return m
}

// A Node is cordoned and drained, the host reboots, and the Node is uncordoned when it has reported Ready again. The API server,
// which may run on the host, does not respond for a while.
func TestReboot(t *testing.T) {
	w := newRebootWorld(t)
	w.outages = 3
	if err := w.reboot(t); err != nil {
		t.Fatal(err)
	}
	if want := []string{"evict p", "cordoned: true", "remediation prevented: true", "maintenance: false", "reboot"}; !slices.Equal(w.log, want) {
		t.Errorf("%q, want %q", w.log, want)
	}
	if node := w.node(t); node.Spec.Unschedulable || len(node.Annotations) > 0 {
		t.Errorf("the Node: %+v", node)
	}
	if m := w.machine(t); len(m.Annotations) > 0 {
		t.Errorf("the Machine: %v", m.Annotations)
	}
	for _, text := range []string{"h1: draining Node n1", "h1: rebooting", "h1: rebooted, Node n1 is Ready"} {
		if !strings.Contains(w.errs.String(), text) {
			t.Errorf("the output lacks %q:\n%s", text, w.errs)
		}
	}
}

// What a user has set stays: a cordoned Node, and a Machine that is not to be replaced.
func TestRebootRetainsSettings(t *testing.T) {
	w := newRebootWorld(t)
	node := w.node(t)
	node.Spec.Unschedulable = true
	m := w.machine(t)
	m.Annotations = map[string]string{clusterv1.MachineSkipRemediationAnnotation: "mine"}
	if err := errors.Join(w.workload.Update(t.Context(), node), w.connection.Client.Update(t.Context(), m), w.reboot(t)); err != nil {
		t.Fatal(err)
	}
	if !w.node(t).Spec.Unschedulable || w.machine(t).Annotations[clusterv1.MachineSkipRemediationAnnotation] != "mine" {
		t.Errorf("%+v, %v", w.node(t).Spec, w.machine(t).Annotations)
	}
}

// After an interruption between the reboot and its end, the same command ends it: the Node that it has cordoned is uncordoned.
func TestRebootIsContinued(t *testing.T) {
	w := newRebootWorld(t)
	w.server.Handle("reboot", func(sshtest.Call) sshtest.Result { return sshtest.Result{Code: 1, Errors: "no"} })
	if err := w.reboot(t); err == nil {
		t.Fatal("the reboot failed on the host, and the command did not")
	}
	if node := w.node(t); !node.Spec.Unschedulable {
		t.Errorf("the Node does not stay cordoned: %+v", node.Spec)
	}
	w.simulate()
	if err := w.reboot(t); err != nil {
		t.Fatal(err)
	}
	if node := w.node(t); node.Spec.Unschedulable || len(node.Annotations) > 0 || len(w.machine(t).Annotations) > 0 {
		t.Errorf("%+v", node)
	}
}

// A host that is no Node yet is not rebooted, and a free one is in maintenance while it reboots.
func TestRebootWithoutNode(t *testing.T) {
	w := newRebootWorld(t)
	m := w.machine(t)
	m.Status.NodeRef.Name = ""
	if err := w.connection.Client.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if err := w.reboot(t); fault.As(err) == nil || fault.As(err).Reason != reasonInUse || len(w.log) > 0 {
		t.Errorf("a host that is being prepared: %v, %v", err, w.log)
	}
	host, err := getHost(t.Context(), w.connection, "h1")
	if err != nil {
		t.Fatal(err)
	}
	host.Status.Claim = nil
	if err := w.connection.Client.Status().Update(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	if err := w.reboot(t); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(w.log, "maintenance: true") || !slices.Contains(w.log, "reboot") {
		t.Errorf("%q", w.log)
	}
	if host, err = getHost(t.Context(), w.connection, "h1"); err != nil || ptr.Deref(host.Spec.Maintenance, false) {
		t.Errorf("the host stays in maintenance: %v, %v", host.Spec.Maintenance, err)
	}
}

// A free host that the command has put in maintenance is offered again when the command is repeated after an interruption, but not one
// that a user has put in maintenance. The host is read when it is its turn.
func TestRebootOfAFreeHostIsContinued(t *testing.T) {
	for name, byUser := range map[string]bool{"by the command": false, "by a user": true} {
		w := newRebootWorld(t)
		before, host := w.read(t), w.read(t) // it is a Node when the command begins
		if byUser {
			host.Spec.Maintenance = ptr.To(true)
			if err := w.connection.Client.Update(t.Context(), host); err != nil {
				t.Fatal(err)
			}
		}
		host.Status.Claim = nil
		if err := w.connection.Client.Status().Update(t.Context(), host); err != nil {
			t.Fatal(err)
		}
		w.server.Handle("reboot", func(sshtest.Call) sshtest.Result { return sshtest.Result{Code: 1, Errors: "no"} })
		if err := w.rebootHost(t, before); err == nil || fault.As(err).Reason == reasonInUse {
			t.Fatalf("%s: %v", name, err)
		}
		if host = w.read(t); !ptr.Deref(host.Spec.Maintenance, false) {
			t.Errorf("%s: %+v", name, host.Spec)
		}
		w.simulate()
		if err := w.reboot(t); err != nil {
			t.Fatal(err)
		}
		if host = w.read(t); ptr.Deref(host.Spec.Maintenance, false) != byUser || len(host.Annotations) > 0 {
			t.Errorf("%s: maintenance %v, annotations %v", name, host.Spec.Maintenance, host.Annotations)
		}
	}
}

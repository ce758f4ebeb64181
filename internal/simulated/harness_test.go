package simulated_test

import (
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/simulated"
)

// version that the clusters of these tests have.
const version = "v1.36.3"

// world is a server with an authority for its clusters.
type world struct {
	*simulated.Server
	dir string
	ca  pki.Pair
	end func()
}

func newWorld(t testing.TB, dir string) *world {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &world{Server: simulated.New(ctx, simulated.Config{Dir: dir, Log: logr.Discard()}), dir: dir}
	w.end = func() {
		cancel()
		<-w.Ended()
	}
	t.Cleanup(w.end)
	w.ca = authority(t)
	return w
}

func authority(t testing.TB) pki.Pair {
	t.Helper()
	ca, err := pki.NewAuthority(pki.Authority{Name: "kubernetes"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// spec of the cluster of a name.
func (w *world) spec(t testing.TB, name string) simulated.Spec {
	t.Helper()
	port, err := w.Reserve(name)
	if err != nil {
		t.Fatal(err)
	}
	return simulated.Spec{
		Cluster: types.NamespacedName{Namespace: "default", Name: name}, Version: version,
		Address: net.JoinHostPort(simulated.Host, strconv.Itoa(port)), CACert: w.ca.CertPEM, CAKey: w.ca.KeyPEM,
	}
}

// start starts a cluster and returns its administrator's access.
func (w *world) start(t testing.TB, name string) *rest.Config {
	t.Helper()
	spec := w.spec(t, name)
	if err := w.Start(name, spec); err != nil {
		t.Fatal(err)
	}
	return access(t, spec.Address, w.ca, w.ca, "kubernetes-admin", "system:masters")
}

// access of a user with a certificate of the signer, who trusts the authority.
func access(t testing.TB, address string, authority, signer pki.Pair, user string, groups ...string) *rest.Config {
	t.Helper()
	leaf, err := signer.Issue(pki.Leaf{User: user, Groups: groups, Client: true}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &rest.Config{
		Host: "https://" + address, QPS: -1, Timeout: 30 * time.Second,
		TLSClientConfig: rest.TLSClientConfig{CAData: authority.CertPEM, CertData: leaf.CertPEM, KeyData: leaf.KeyPEM},
	}
}

func clientOf(t testing.TB, config *rest.Config) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// node with a kubelet that is alive.
func node(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.NodeSpec{ProviderID: "slipway:///" + name},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

// pod bound to a node.
func pod(name, node string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "example:1"}}},
	}
}

// eventually waits until a question is answered with yes.
func eventually(t testing.TB, what string, yes func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !yes(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after 30 s still not: %s", what)
		}
	}
}

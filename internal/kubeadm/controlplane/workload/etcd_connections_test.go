package workload_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane/workload"
	"github.com/slipwayhq/slipway/internal/workload/portforward"
)

// refusing notes where it was asked to connect to, and refuses.
type refusing struct {
	mu sync.Mutex
	to []portforward.Target
}

func (r *refusing) Forward(_ context.Context, _ client.ObjectKey, to portforward.Target) (net.Conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = append(r.to, to)
	return nil, errors.New("connection refused")
}

func (r *refusing) asked(to portforward.Target) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.to, to)
}

func authority(t *testing.T, now time.Time) *corev1.Secret {
	t.Helper()
	pair, err := pki.NewAuthority(pki.Authority{Name: "etcd"}, now)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "tower-etcd"}, Data: map[string][]byte{"tls.crt": pair.CertPEM, "tls.key": pair.KeyPEM},
	}
}

// A connection is used as long as members, authority and its certificate stay, and leads to the Pods of etcd.
func TestConnections(t *testing.T) { // KC-34
	now := time.Now()
	secret, cluster := authority(t, now), client.ObjectKey{Namespace: "team", Name: "tower"}
	c := fake.NewClientBuilder().WithObjects(secret).Build()
	forwarder := &refusing{}
	all := &workload.EtcdConnections{Forwarder: forwarder, Secrets: []client.Reader{c}, Now: func() time.Time { return now },
		EtcdTimeouts: workload.EtcdTimeouts{Dial: 50 * time.Millisecond, Call: 50 * time.Millisecond}}
	get := func(nodes ...string) any {
		t.Helper()
		made, err := all.Etcd(t.Context(), cluster, nodes)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	first := get("cp-1", "cp-2")
	if get("cp-1", "cp-2") != first {
		t.Error("the second call made another connection")
	}
	second := get("cp-1")
	if second == first {
		t.Error("a member that left is still asked")
	}
	now = now.Add(44 * time.Minute)
	if get("cp-1") != second {
		t.Error("a connection of 44 minutes was made again")
	}
	now = now.Add(2 * time.Minute)
	third := get("cp-1")
	if third == second {
		t.Error("the connection is as old as its certificate")
	}
	rotated := authority(t, now)
	if err := c.Update(t.Context(), rotated); err != nil {
		t.Fatal(err)
	}
	fourth := get("cp-1")
	if fourth == third {
		t.Error("the connection has the authority of before")
	}
	made, err := all.Etcd(t.Context(), cluster, []string{"cp-1"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = made.Members(t.Context())
	if to := (portforward.Target{Namespace: "kube-system", Pod: "etcd-cp-1", Port: 2379}); fault.KindOf(err) != fault.Unreachable || !forwarder.asked(to) {
		t.Errorf("got %v, was not asked for %v", err, to)
	}

	other := client.ObjectKey{Namespace: "team", Name: "second"}
	its := authority(t, now)
	its.Name = "second-etcd"
	if err := c.Create(t.Context(), its); err != nil {
		t.Fatal(err)
	}
	open := func(age time.Duration) int {
		now = now.Add(age)
		if _, err := all.Etcd(t.Context(), other, []string{"cp-1"}); err != nil {
			t.Fatal(err)
		}
		return all.Open()
	}
	if n := open(89 * time.Minute); n != 2 {
		t.Errorf("%d clusters have connections, want 2", n)
	}
	if n := open(2 * time.Minute); n != 1 {
		t.Errorf("the connection of a cluster that is no longer read stays open: %d clusters", n)
	}
}

// Without what a connection needs it says which Secret lacks what, and asks nothing.
func TestWithoutAuthority(t *testing.T) {
	now := time.Now()
	public := authority(t, now)
	delete(public.Data, "tls.key")
	broken := authority(t, now)
	broken.Data["tls.key"] = []byte("x")
	for name, tc := range map[string]struct {
		secret *corev1.Secret
		nodes  []string
		kind   fault.Kind
		want   string
	}{
		"no Secret":  {nil, []string{"cp-1"}, fault.Unreachable, "Secret tower-etcd has no key, which is required to sign client certificates for etcd"},
		"no key":     {public, []string{"cp-1"}, fault.Unreachable, "Secret tower-etcd has no key, which is required to sign client certificates for etcd"},
		"broken key": {broken, []string{"cp-1"}, fault.Invalid, "the etcd CA cannot be used"},
		"no Nodes":   {authority(t, now), nil, fault.Unreachable, "no Node with an etcd member is known"},
	} {
		t.Run(name, func(t *testing.T) {
			b := fake.NewClientBuilder()
			if tc.secret != nil {
				b = b.WithObjects(tc.secret)
			}
			all := &workload.EtcdConnections{Forwarder: &refusing{}, Secrets: []client.Reader{b.Build()}, Now: func() time.Time { return now }}
			_, err := all.Etcd(t.Context(), client.ObjectKey{Namespace: "team", Name: "tower"}, tc.nodes)
			if f := fault.As(err); f == nil || f.Kind != tc.kind || f.Message != tc.want {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

package etcd_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/kubeadm/etcd"
	"github.com/slipwayhq/slipway/internal/simulated/store"
)

// notes are kept in memory.
type notes map[string][]byte

func (n notes) Get(name string) []byte { return n[name] }

func (n notes) Set(name string, value []byte) error {
	n[name] = value
	return nil
}

// What is read of a member, however often, needs one connection to it.
func TestOneConnectionForEachMember(t *testing.T) { // KC-34
	authority, err := pki.NewAuthority(pki.Authority{Name: "etcd-ca"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	servers := store.NewEtcd(notes{}, authority, time.Now)
	for _, name := range []string{"cp-1", "cp-2"} {
		if joined, err := servers.Join(name, "100.64.0.1"); err != nil || !joined {
			t.Fatalf("%s does not join: %v", name, err)
		}
	}
	config, err := etcd.ClientTLS(authority.CertPEM, authority.KeyPEM, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var dialed atomic.Int32
	c, err := etcd.Connect(etcd.Config{Nodes: []string{"cp-1", "cp-2"}, TLS: config, Dial: func(_ context.Context, node string) (net.Conn, error) {
		dialed.Add(1)
		ours, theirs := net.Pipe()
		go func() {
			_ = servers.Serve(node, theirs)
			_ = theirs.Close()
		}()
		return ours, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	for range 3 {
		if all, err := c.Members(t.Context()); err != nil || len(all) != 2 {
			t.Fatalf("got %v, %v", all, err)
		}
		for _, node := range []string{"cp-1", "cp-2"} {
			if s, err := c.Status(t.Context(), node); err != nil || s.ID == 0 || s.Leader == 0 || s.Version == "" || len(s.Members) != 2 {
				t.Fatalf("%s: got %+v, %v", node, s, err)
			}
		}
	}
	if n := dialed.Load(); n != 2 {
		t.Errorf("%d connections to 2 members", n)
	}
}

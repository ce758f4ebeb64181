package store_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/simulated/store"
)

// notes are kept in memory.
type notes map[string][]byte

func (n notes) Get(name string) []byte { return n[name] }

func (n notes) Set(name string, value []byte) error {
	n[name] = value
	return nil
}

type world struct {
	*store.EtcdCluster
	notes     notes
	authority pki.Pair
}

func newWorld(t *testing.T, members ...string) world {
	t.Helper()
	authority, err := pki.NewAuthority(pki.Authority{Name: "etcd-ca"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	w := world{notes: notes{}, authority: authority}
	w.EtcdCluster = store.NewEtcd(w.notes, authority, time.Now)
	for _, name := range members {
		if joined, err := w.Join(name, "100.64.0.1"); err != nil || !joined {
			t.Fatalf("%s does not join: %v", name, err)
		}
	}
	return w
}

// client is one of the member on a node, on connections that are served in memory.
func (w world) client(t *testing.T, node string) *clientv3.Client {
	t.Helper()
	leaf, err := w.authority.Issue(pki.Leaf{User: "client", Client: true}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	own, err := tls.X509KeyPair(leaf.CertPEM, leaf.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(w.authority.Cert)
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"https://" + node + ":2379"}, Logger: zap.NewNop(), MaxUnaryRetries: 1,
		TLS: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}, ServerName: node},
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				_ = w.Serve(node, theirs)
				_ = theirs.Close()
			}()
			return ours, nil
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func names(list []*pb.Member) (out []string) {
	for _, m := range list {
		out = append(out, m.Name)
	}
	slices.Sort(out)
	return out
}

// What a controller of control planes asks of members, in the order of a member's removal.
func TestMembers(t *testing.T) {
	w := newWorld(t, "cp-1", "cp-2", "cp-3")
	ctx := t.Context()
	one, two := w.client(t, "cp-1"), w.client(t, "cp-2")
	list, err := one.MemberList(ctx)
	if err != nil || !slices.Equal(names(list.Members), []string{"cp-1", "cp-2", "cp-3"}) {
		t.Fatalf("got %v, %v", list, err)
	}
	status, err := two.Status(ctx, two.Endpoints()[0])
	if err != nil || status.Leader == 0 || status.Header.MemberId == status.Leader {
		t.Fatalf("the first member leads; got %+v, %v", status, err)
	}
	if _, err := two.MoveLeader(ctx, status.Header.MemberId); !errors.Is(err, rpctypes.ErrNotLeader) {
		t.Errorf("only the leader hands over; got %v", err)
	}
	if _, err := one.MoveLeader(ctx, status.Header.MemberId); err != nil || w.Leader() != "cp-2" {
		t.Errorf("led by %s, %v; want cp-2", w.Leader(), err)
	}
	leader := one.ActiveConnection()
	if leader == nil {
		t.Error("no connection")
	}
	first := list.Members[slices.IndexFunc(list.Members, func(m *pb.Member) bool { return m.Name == "cp-1" })]
	if left, err := two.MemberRemove(ctx, first.ID); err != nil || !slices.Equal(names(left.Members), []string{"cp-2", "cp-3"}) {
		t.Errorf("after the removal: %v, %v", left, err)
	}
	if _, err := two.MemberRemove(ctx, first.ID); !errors.Is(err, rpctypes.ErrMemberNotFound) {
		t.Errorf("removed twice: %v", err)
	}
	if again := store.NewEtcd(w.notes, w.authority, time.Now); len(again.Members()) != 2 || again.Leader() != "cp-2" {
		t.Errorf("after a restart: %v, led by %s", again.Members(), again.Leader())
	}
}

// Without a quorum nothing is agreed upon; members still say how they are. With it again, another leads.
func TestQuorum(t *testing.T) {
	w := newWorld(t, "cp-1", "cp-2", "cp-3")
	three := w.client(t, "cp-3")
	ask := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := three.MemberList(ctx)
		return err
	}
	for _, name := range []string{"cp-1", "cp-2"} {
		if err := w.Stop(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := ask(); err == nil || w.HasQuorum() || w.Leader() != "" {
		t.Errorf("one of three answers: %v, led by %q", err, w.Leader())
	}
	status, err := three.Status(t.Context(), three.Endpoints()[0])
	if err != nil || status.Leader != 0 || len(status.Errors) != 1 {
		t.Errorf("got %+v, %v", status, err)
	}
	if joined, err := w.Join("cp-4", ""); joined || err != nil {
		t.Errorf("a fourth joined without a quorum: %v", err)
	}
	if err := w.Serve("cp-1", nil); err == nil {
		t.Error("a stopped member answers")
	}
	if _, err := w.Join("cp-2", ""); err != nil {
		t.Fatal(err)
	}
	if err := ask(); err != nil || w.Leader() == "" || w.Leader() == "cp-1" {
		t.Errorf("two of three answer: %v, led by %q", err, w.Leader())
	}
}

// Alarms and slow disks are seen, and alarms can be disarmed.
func TestFaults(t *testing.T) {
	w := newWorld(t, "cp-1")
	c := w.client(t, "cp-1")
	if err := w.Change("cp-1", func(m *store.EtcdMember) { m.Alarms = []string{"NOSPACE"} }); err != nil {
		t.Fatal(err)
	}
	alarms, err := c.AlarmList(t.Context())
	if err != nil || len(alarms.Alarms) != 1 || alarms.Alarms[0].Alarm != pb.AlarmType_NOSPACE {
		t.Fatalf("got %v, %v", alarms, err)
	}
	if _, err := c.AlarmDisarm(t.Context(), &clientv3.AlarmMember{MemberID: alarms.Alarms[0].MemberID, Alarm: pb.AlarmType_NOSPACE}); err != nil {
		t.Fatal(err)
	}
	if m := w.Members(); len(m[0].Alarms) != 0 {
		t.Errorf("disarmed; got %+v", m)
	}
	if err := w.Change("cp-1", func(m *store.EtcdMember) { m.Delay = time.Minute }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := c.MemberList(ctx); err == nil {
		t.Error("a slow member answered at once")
	}
}

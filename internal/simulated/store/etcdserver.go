package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/pause"
)

// EtcdPort is the client port of a member. Package simulated forwards this port of Pods.
const EtcdPort = 2379

// simulatedVersion is the etcd version that members report. It has no effect on their behavior.
const simulatedVersion = "3.6.8"

// reportedDatabaseSize is the reported size of a member's database, in bytes.
const reportedDatabaseSize = 4 << 20

// memberCertificate is the certificate of a member, with the time of its renewal.
type memberCertificate struct {
	tls   tls.Certificate
	until time.Time
}

// Serve serves a connection to the member of a node until the connection is closed. The forwarded ports of simulated
// Pods lead here, for controllers that manage the members. It fails if the member does not exist or is stopped.
func (c *EtcdCluster) Serve(name string, conn net.Conn) error {
	c.mu.Lock()
	s := c.load()
	m := s.byName(name)
	c.mu.Unlock()
	if m == nil || m.Stopped {
		return fmt.Errorf("connection refused: no member of etcd runs on %s", name)
	}
	own, err := c.certificate(*m)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AddCert(c.authority.Cert)
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots, Certificates: []tls.Certificate{own},
	})))
	answers := &memberServer{cluster: c, name: name}
	pb.RegisterClusterServer(server, answers)
	pb.RegisterMaintenanceServer(server, answers)
	l := &singleConnListener{conn: conn, ended: make(chan struct{})}
	if err := server.Serve(l); err != nil && !errors.Is(err, errEnded) {
		return err
	}
	return nil
}

// certificate returns the certificate of a member. It is renewed halfway through its lifetime.
func (c *EtcdCluster) certificate(m EtcdMember) (tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if have, ok := c.certificates[m.Name]; ok && c.now().Before(have.until) {
		return have.tls, nil
	}
	leaf := pki.Leaf{User: m.Name, Names: []string{m.Name, "localhost"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}
	if ip := net.ParseIP(m.Address); ip != nil {
		leaf.IPs = append(leaf.IPs, ip)
	}
	pair, err := c.authority.Issue(leaf, c.now())
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making the certificate of etcd member %s: %w", m.Name, err)
	}
	made, err := tls.X509KeyPair(pair.CertPEM, pair.KeyPEM)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making the certificate of etcd member %s: %w", m.Name, err)
	}
	c.certificates[m.Name] = memberCertificate{made, c.now().Add(pair.Cert.NotAfter.Sub(c.now()) / 2)}
	return made, nil
}

// errEnded is returned by the listener when its connection is closed.
var errEnded = errors.New("the connection has ended")

// singleConnListener is a listener for one connection.
type singleConnListener struct {
	conn  net.Conn
	taken sync.Once
	close sync.Once
	ended chan struct{}
}

func (l *singleConnListener) Accept() (net.Conn, error) {
	first := false
	l.taken.Do(func() { first = true })
	if first {
		return closeNotifier{l.conn, func() { _ = l.Close() }}, nil
	}
	<-l.ended
	return nil, errEnded
}

func (l *singleConnListener) Close() error {
	l.close.Do(func() { close(l.ended) })
	return nil
}

func (l *singleConnListener) Addr() net.Addr { return l.conn.LocalAddr() }

// closeNotifier is a connection with a callback for its closing.
type closeNotifier struct {
	net.Conn
	ended func()
}

func (e closeNotifier) Close() error {
	defer e.ended()
	return e.Conn.Close()
}

// memberServer implements the services of one member.
type memberServer struct {
	pb.UnimplementedClusterServer
	pb.UnimplementedMaintenanceServer

	cluster *EtcdCluster
	name    string
}

// call runs a call of this member with the current state, or rejects it as etcd would. Calls with agreed set require a
// quorum.
func (m *memberServer) call(ctx context.Context, agreed bool, do func(s *etcdState, me EtcdMember) (changed bool, err error)) (*pb.ResponseHeader, error) {
	var header *pb.ResponseHeader
	var failed error
	var delay time.Duration
	err := m.cluster.change(func(s *etcdState) bool {
		me := s.byName(m.name)
		if me == nil || me.Stopped {
			failed = rpctypes.ErrGRPCStopped
			return false
		}
		delay = me.Delay
		if agreed && !s.quorum() {
			failed = rpctypes.ErrGRPCTimeoutDueToLeaderFail
			return false
		}
		header = &pb.ResponseHeader{ClusterId: clusterID, MemberId: me.ID, RaftTerm: s.Term, Revision: 1}
		changed, err := do(s, *me)
		failed = err
		return changed && err == nil
	})
	if err == nil {
		err = failed
	}
	if delay > 0 {
		if err := pause.Sleep(ctx, delay); err != nil {
			return nil, err
		}
	}
	return header, err
}

// clusterID is the same for all members.
const clusterID = 0x51

func (m *memberServer) MemberList(ctx context.Context, r *pb.MemberListRequest) (*pb.MemberListResponse, error) {
	out := &pb.MemberListResponse{}
	header, err := m.call(ctx, r.Linearizable, func(s *etcdState, _ EtcdMember) (bool, error) {
		out.Members = listOf(s)
		return false, nil
	})
	out.Header = header
	return out, err
}

func listOf(s *etcdState) []*pb.Member {
	var out []*pb.Member
	for _, m := range s.Members {
		out = append(out, &pb.Member{
			ID: m.ID, Name: m.Name, IsLearner: m.Learner,
			PeerURLs: []string{"https://" + net.JoinHostPort(m.Address, "2380")}, ClientURLs: []string{"https://" + net.JoinHostPort(m.Address, "2379")},
		})
	}
	return out
}

func (m *memberServer) MemberRemove(ctx context.Context, r *pb.MemberRemoveRequest) (*pb.MemberRemoveResponse, error) {
	out := &pb.MemberRemoveResponse{}
	header, err := m.call(ctx, true, func(s *etcdState, _ EtcdMember) (bool, error) {
		if s.byID(r.ID) == nil {
			return false, rpctypes.ErrGRPCMemberNotFound
		}
		var left []EtcdMember
		for _, one := range s.Members {
			if one.ID != r.ID {
				left = append(left, one)
			}
		}
		s.Members = left
		s.elect()
		out.Members = listOf(s)
		return true, nil
	})
	out.Header = header
	return out, err
}

func (m *memberServer) MemberPromote(ctx context.Context, r *pb.MemberPromoteRequest) (*pb.MemberPromoteResponse, error) {
	out := &pb.MemberPromoteResponse{}
	header, err := m.call(ctx, true, func(s *etcdState, _ EtcdMember) (bool, error) {
		one := s.byID(r.ID)
		if one == nil {
			return false, rpctypes.ErrGRPCMemberNotFound
		}
		one.Learner = false
		out.Members = listOf(s)
		return true, nil
	})
	out.Header = header
	return out, err
}

func (m *memberServer) Status(ctx context.Context, _ *pb.StatusRequest) (*pb.StatusResponse, error) {
	out := &pb.StatusResponse{Version: simulatedVersion, DbSize: reportedDatabaseSize, DbSizeInUse: reportedDatabaseSize}
	header, err := m.call(ctx, false, func(s *etcdState, me EtcdMember) (bool, error) {
		out.IsLearner, out.RaftTerm = me.Learner, s.Term
		if s.quorum() {
			out.Leader = s.Leader
		} else {
			out.Errors = append(out.Errors, "etcdserver: no leader")
		}
		for _, a := range me.Alarms {
			out.Errors = append(out.Errors, fmt.Sprintf("memberID:%d alarm:%s ", me.ID, a))
		}
		return false, nil
	})
	out.Header = header
	return out, err
}

func (m *memberServer) Alarm(ctx context.Context, r *pb.AlarmRequest) (*pb.AlarmResponse, error) {
	out := &pb.AlarmResponse{}
	header, err := m.call(ctx, true, func(s *etcdState, _ EtcdMember) (bool, error) {
		changed := false
		if r.Action == pb.AlarmRequest_DEACTIVATE {
			if one := s.byID(r.MemberID); one != nil && len(one.Alarms) > 0 {
				one.Alarms, changed = nil, true
			}
		}
		for _, one := range s.Members {
			for _, a := range one.Alarms {
				out.Alarms = append(out.Alarms, &pb.AlarmMember{MemberID: one.ID, Alarm: pb.AlarmType(pb.AlarmType_value[a])})
			}
		}
		return changed, nil
	})
	out.Header = header
	return out, err
}

func (m *memberServer) MoveLeader(ctx context.Context, r *pb.MoveLeaderRequest) (*pb.MoveLeaderResponse, error) {
	out := &pb.MoveLeaderResponse{}
	header, err := m.call(ctx, true, func(s *etcdState, me EtcdMember) (bool, error) {
		to := s.byID(r.TargetID)
		switch {
		case s.Leader != me.ID:
			return false, rpctypes.ErrGRPCNotLeader
		case to == nil || to.Learner || to.Stopped:
			return false, rpctypes.ErrGRPCBadLeaderTransferee
		}
		s.Leader, s.Term = to.ID, s.Term+1
		return true, nil
	})
	out.Header = header
	return out, err
}

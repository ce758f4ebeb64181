package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipwayhq/slipway/internal/fault"
)

// reasonNoSnapshots is the reason of the fault for an etcd without snapshots. A simulated etcd has no database.
const reasonNoSnapshots = "EtcdTakesNoSnapshots"

// Connection is a connection to one member, from which the EtcdSnapshotPolicy controller takes a snapshot.
type Connection struct {
	client *clientv3.Client
	node   string
	close  func() error
}

// ConnectTo connects to the member on one Node of a KubeadmControlPlane. The EtcdSnapshotPolicy controller calls it,
// for a connection that only reads.
func ConnectTo(cfg Config, node string) (*Connection, error) {
	cfg.Nodes = []string{node}
	all, err := Connect(cfg)
	if err != nil {
		return nil, err
	}
	one, err := all.(*cluster).client(node)
	if err != nil {
		return nil, err
	}
	return &Connection{client: one, node: node, close: all.Close}, nil
}

// ConnectToSocket connects to the member of a hosted control plane, which listens on a unix socket of this host. The
// connection is refused if another user than the given one listens on the socket. The EtcdSnapshotPolicy controller
// calls it.
func ConnectToSocket(path string, user int) (*Connection, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"http://localhost"}, Logger: zap.NewNop(), MaxCallRecvMsgSize: maxResponseBytes, MaxUnaryRetries: 1,
		DialOptions: []grpc.DialOption{grpc.WithDisableServiceConfig(), grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return dialUser(ctx, path, user)
		})},
	})
	if err != nil {
		return nil, fault.New(fault.Unreachable, "EtcdMemberUnreachable", "the etcd member of the control plane does not respond").From(err)
	}
	return &Connection{client: client, node: "localhost", close: client.Close}, nil
}

// dialUser connects to a unix socket after checking which user listens on it.
func dialUser(ctx context.Context, path string, user int) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	var peer *unix.Ucred
	var option error
	err = raw.Control(func(fd uintptr) { peer, option = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(err, option); err != nil {
		_ = conn.Close()
		return nil, err
	}
	if int(peer.Uid) != user {
		_ = conn.Close()
		return nil, fmt.Errorf("user %d listens on %s, and not user %d", peer.Uid, path, user)
	}
	return conn, nil
}

func (c *Connection) Close() error { return c.close() }

// State returns the revision and the version of etcd. The EtcdSnapshotPolicy controller checks with it whether etcd
// responds, and records the values with the snapshot.
func (c *Connection) State(ctx context.Context) (revision int64, version string, err error) {
	got, err := statusOf(ctx, c.client)
	if err != nil {
		return 0, "", asFault(c.node, err)
	}
	return got.Header.GetRevision(), got.Version, nil
}

// Snapshot returns the member's database as a stream that ends with its checksum, in the format of etcdctl snapshot
// save.
func (c *Connection) Snapshot(ctx context.Context) (io.ReadCloser, error) {
	r, err := c.client.Snapshot(ctx)
	if err != nil {
		return nil, snapshotFault(c.node, err)
	}
	return faultReader{r, c.node}, nil
}

// faultReader converts the read errors of a stream to faults.
type faultReader struct {
	io.ReadCloser
	node string
}

func (s faultReader) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = snapshotFault(s.node, err)
	}
	return n, err
}

func snapshotFault(node string, err error) error {
	if status.Code(err) == codes.Unimplemented {
		return fault.New(fault.Invalid, reasonNoSnapshots, "This control plane has no snapshots, because simulated etcd members have no database").From(err)
	}
	return asFault(node, err)
}

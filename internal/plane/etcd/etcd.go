package etcd

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sys/unix"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/plane/ownuser"
)

// Config describes the member.
type Config struct {
	Dir string // data folder; created with mode 0700
	// Place is the path by which other programs know Dir. Default Dir.
	Place string
	// QuotaBytes limits the database. Default 2 GiB (etcd's own).
	QuotaBytes int64
	// Progress is how often a watch that has nothing to tell says how far it has come, which is what makes bookmarks. Default: a
	// minute, a fifth of what kube-apiserver lets etcd remember.
	Progress time.Duration
	// Flags are etcd's own, "--name=value"; those about addresses and the folder have no effect.
	Flags []string
}

// Server is a running member.
type Server struct {
	etcd     *embed.Etcd
	endpoint string
	end      context.CancelFunc
}

// maxSocketPath is what the kernel accepts for a unix socket, less the
// terminating zero.
const maxSocketPath = 107

// slowRequest is how long a request takes that is worth a line in the log.
const slowRequest = time.Second

const memberName = "slipway"

// clientSocket is the name of the socket for clients.
const clientSocket = "client.sock"

// Start starts the member and returns when it serves, or when ctx ends.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("create etcd data folder: %w", err)
	}
	sockets, inside, err := socketFolder(cmp.Or(cfg.Place, cfg.Dir))
	if err != nil {
		return nil, err
	}
	if inside {
		sockets = cfg.Dir
	} else if err := createPrivate(sockets); err != nil {
		return nil, err
	}
	client, http := socketURL(sockets, clientSocket), socketURL(sockets, "http.sock")
	embedded, err := embedded(cfg, client, http)
	if err != nil {
		return nil, err
	}
	open, end := context.WithCancel(context.Background())
	embedded.GRPCAdditionalServerOptions = append(embedded.GRPCAdditionalServerOptions, streams(open))
	e, err := embed.StartEtcd(embedded)
	if err != nil {
		end()
		return nil, fmt.Errorf("start etcd in %s: %w", cfg.Dir, err)
	}
	select {
	case <-e.Server.ReadyNotify():
		return &Server{etcd: e, endpoint: client.String(), end: end}, nil
	case err = <-e.Err():
		err = fmt.Errorf("start etcd in %s: %w", cfg.Dir, err)
	case <-ctx.Done():
		err = ctx.Err()
	}
	end()
	e.Close()
	return nil, err
}

// Endpoint is what a client, kube-apiserver for one, connects to.
func (s *Server) Endpoint() string { return s.endpoint }

// Err delivers the error that ended the member's service.
func (s *Server) Err() <-chan error { return s.etcd.Err() }

// Close stops the member and returns when its data is closed.
func (s *Server) Close() {
	s.end()
	s.etcd.Close()
}

// embedded opens no listener for peers: there are none. What the member says
// about where it is reached must look like host and port, and no one reads it.
func embedded(cfg Config, client, http url.URL) (*embed.Config, error) {
	nowhere := url.URL{Scheme: "unix", Host: "localhost:0"}
	c := embed.NewConfig()
	c.QuotaBackendBytes = cfg.QuotaBytes
	c.WatchProgressNotifyInterval = cmp.Or(cfg.Progress, time.Minute)
	// kube-apiserver compacts; a small member wants few entries kept in memory.
	c.SnapshotCount, c.SnapshotCatchUpEntries = 2000, 500
	flags := flag.NewFlagSet("etcd", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	c.AddFlags(flags)
	if err := flags.Parse(cfg.Flags); err != nil {
		return nil, fault.New(fault.Invalid, "EtcdFlags", "etcd flags: %v", err).From(err)
	}
	c.Name = memberName
	c.Dir = cfg.Dir
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{nowhere}
	c.ListenClientHttpUrls = []url.URL{http} // its own socket: gRPC alone on the other one is leaner
	c.ListenPeerUrls, c.AdvertisePeerUrls = nil, []url.URL{nowhere}
	c.InitialCluster = memberName + "=" + nowhere.String()
	// There is no one to lose an election to, and every tick wakes the process up.
	c.TickMs, c.ElectionMs = 50, 250
	c.EnableGRPCGateway = false
	c.WarningUnaryRequestDuration = slowRequest
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logger())
	return c, nil
}

// logger writes warnings and worse to standard error, which is the log file of
// the process.
func logger() *zap.Logger {
	cfg := zap.NewProductionConfig()
	cfg.Level = zap.NewAtomicLevelAt(zapcore.WarnLevel)
	cfg.EncoderConfig.EncodeTime = zapcore.ISO8601TimeEncoder
	l, err := cfg.Build()
	if err != nil {
		return zap.NewNop()
	}
	return l.Named("etcd")
}

func socketURL(folder, name string) url.URL {
	return url.URL{Scheme: "unix", Path: filepath.Join(folder, name)}
}

// socketFolder is the data folder, or, where that path is too long for a
// socket, a private folder in the system's place for temporary files.
func socketFolder(dir string) (folder string, inside bool, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", false, err
	}
	if SocketInside(abs) {
		return abs, true, nil
	}
	sum := sha256.Sum256([]byte(abs))
	return filepath.Join(os.TempDir(), "slipway-"+hex.EncodeToString(sum[:8])), false, nil
}

// SocketInside reports whether a member with its data in this folder listens for clients in it, so that its socket goes where the
// folder goes.
func SocketInside(dir string) bool { return len(filepath.Join(dir, clientSocket)) <= maxSocketPath }

// createPrivate creates a folder, and refuses one that another client prepared.
func createPrivate(folder string) error {
	if err := os.Mkdir(folder, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(folder, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || st.Mode&0o777 != 0o700 || int(st.Uid) != os.Geteuid() {
		return fault.New(fault.Invalid, "SocketFolderNotPrivate",
			"folder %s must be a directory of this user with mode 0700; remove it, or choose a shorter --data-dir", folder)
	}
	return nil
}

// ClearSockets removes the folder of sockets that an earlier process left, in the system's place for temporary files, which ran as this user or as that
// of another control plane: a member that runs as the user makes its own.
func ClearSockets(dir string, user int) error {
	folder, inside, err := socketFolder(dir)
	if err != nil || inside {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(folder, &st); err != nil {
		return nil // there is none
	}
	if owner := int(st.Uid); owner == user || owner != os.Geteuid() && !ownuser.IsOwn(owner) {
		return nil
	}
	return os.RemoveAll(folder)
}

// ClientSocket is where the member with its data in this folder listens for clients. Who connects checks which user does.
func ClientSocket(dir string) (string, error) {
	folder, _, err := socketFolder(dir)
	return filepath.Join(folder, clientSocket), err
}

// Identity is what a member is called: a data folder made of a snapshot has to be that of the same one.
type Identity struct{ Name, PeerURL, Token string }

// Member returns the identity of every member that this package starts.
func Member() Identity {
	nowhere := url.URL{Scheme: "unix", Host: "localhost:0"}
	return Identity{Name: memberName, PeerURL: nowhere.String(), Token: embed.NewConfig().InitialClusterToken}
}

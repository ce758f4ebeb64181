package etcd

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Config describes the member.
type Config struct {
	Dir string // data folder; created with mode 0700
	// Place is the path by which other programs know Dir. Default Dir.
	Place string
	// QuotaBytes limits the database. Default: [DefaultQuotaBytes].
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

// DefaultQuotaBytes is how large the database may be where nothing else is set.
const DefaultQuotaBytes = 2 << 30

// defragmentFrom is how many MB of a database have to be free for a start to return them to the file system. etcd counts free pages
// as used, so that deleting objects alone does not make space.
const defragmentFrom = 64

// slowRequest is how long a request takes that is worth a line in the log.
const slowRequest = time.Second

const memberName = "slipway"

// Start starts the member and returns when it serves, or when ctx ends.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("create etcd data folder: %w", err)
	}
	sockets, err := cfg.sockets()
	if err != nil {
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
		if err = rearm(ctx, e); err == nil {
			return &Server{etcd: e, endpoint: client.String(), end: end}, nil
		}
	case err = <-e.Err():
		err = fmt.Errorf("start etcd in %s: %w", cfg.Dir, err)
	case <-ctx.Done():
		err = ctx.Err()
	}
	end()
	e.Close()
	return nil, err
}

// rearm ends the alarm of a database that was full where there is space again: etcd writes nothing while the alarm is on, and only ends it
// when somebody asks. The start has returned to the file system what was deleted.
func rearm(ctx context.Context, e *embed.Etcd) error {
	quota := cmp.Or(e.Server.Cfg.QuotaBackendBytes, DefaultQuotaBytes)
	if quota < 0 || e.Server.Backend().Size() > quota/10*9 {
		return nil
	}
	for _, alarm := range e.Server.Alarms() {
		if alarm.Alarm != etcdserverpb.AlarmType_NOSPACE {
			continue
		}
		_, err := e.Server.Alarm(ctx, &etcdserverpb.AlarmRequest{
			Action: etcdserverpb.AlarmRequest_DEACTIVATE, MemberID: alarm.MemberID, Alarm: alarm.Alarm,
		})
		if err != nil {
			return fmt.Errorf("end the alarm NOSPACE of etcd: %w", err)
		}
	}
	return nil
}

// DatabaseFile is the file of the database of the member with its data in this folder: etcd compares its size with the limit.
func DatabaseFile(dir string) string { return filepath.Join(dir, "member", "snap", "db") }

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
	c.BootstrapDefragThresholdMegabytes = defragmentFrom // etcd's flags set it to 0
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

// Identity is what a member is called: a data folder made of a snapshot has to be that of the same one.
type Identity struct{ Name, PeerURL, Token string }

// Member returns the identity of every member that this package starts.
func Member() Identity {
	nowhere := url.URL{Scheme: "unix", Host: "localhost:0"}
	return Identity{Name: memberName, PeerURL: nowhere.String(), Token: embed.NewConfig().InitialClusterToken}
}

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

// Config configures the member of a management or workload cluster. Package controlplane fills it.
type Config struct {
	Dir string // data directory, created with mode 0700
	// ExternalPath is the path of Dir for other programs. It defaults to Dir.
	ExternalPath string
	// QuotaBytes limits the database. Default: [DefaultQuotaBytes].
	QuotaBytes int64
	// Progress is the interval between progress notifications of idle watches, from which bookmarks are made.
	// Default: one minute, a fifth of the time after which kube-apiserver compacts etcd.
	Progress time.Duration
	// Flags are etcd flags in the form "--name=value". Flags for addresses and directories have no effect.
	Flags []string
}

// Server is a running member. Package controlplane closes it when the control plane ends.
type Server struct {
	etcd     *embed.Etcd
	endpoint string
	end      context.CancelFunc
}

// DefaultQuotaBytes is the default size limit of the database.
const DefaultQuotaBytes = 2 << 30

// defragmentFrom is the free space in a database, in MiB, from which it is defragmented at the start. etcd counts free
// pages as used, therefore deleting objects alone does not free space.
const defragmentFrom = 64

// slowRequest is the duration from which a request is logged.
const slowRequest = time.Second

const memberName = "slipway"

// Start starts the member and returns when it serves, or fails when ctx ends before. The member then runs until Close.
// Package controlplane starts one for each management and workload cluster.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("create etcd data folder: %w", err)
	}
	sockets, err := cfg.sockets()
	if err != nil {
		return nil, err
	}
	client, http := socketURL(sockets, clientSocket), socketURL(sockets, "http.sock")
	embedded, err := memberConfig(cfg, client, http)
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
		if err = disarmNoSpaceAlarm(ctx, e); err == nil {
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

// disarmNoSpaceAlarm disarms the NOSPACE alarm if there is space again. etcd rejects writes while the alarm is active,
// and only disarms it on request. The defragmentation at the start has freed the space of deleted objects.
func disarmNoSpaceAlarm(ctx context.Context, e *embed.Etcd) error {
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

// DatabaseFile returns the database file of the member with this data directory. etcd compares its size with the quota.
// `slipway status` reports its size.
func DatabaseFile(dir string) string { return filepath.Join(dir, "member", "snap", "db") }

// Endpoint returns the endpoint for clients such as kube-apiserver.
func (s *Server) Endpoint() string { return s.endpoint }

// Err delivers the error that ended the member.
func (s *Server) Err() <-chan error { return s.etcd.Err() }

// Close stops the member and returns when its data is closed.
func (s *Server) Close() {
	s.end()
	s.etcd.Close()
}

// memberConfig returns the configuration of a member without a peer listener, because there are no peers. The
// advertised address must look like host and port, but is not used.
func memberConfig(cfg Config, client, http url.URL) (*embed.Config, error) {
	nowhere := url.URL{Scheme: "unix", Host: "localhost:0"}
	c := embed.NewConfig()
	c.QuotaBackendBytes = cfg.QuotaBytes
	c.WatchProgressNotifyInterval = cmp.Or(cfg.Progress, time.Minute)
	// kube-apiserver compacts. A small member needs few entries in memory.
	c.SnapshotCount, c.SnapshotCatchUpEntries = 2000, 500
	flags := flag.NewFlagSet("etcd", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	c.AddFlags(flags)
	if err := flags.Parse(cfg.Flags); err != nil {
		return nil, fault.New(fault.Invalid, "EtcdFlags", "etcd flags: %v", err).From(err)
	}
	c.Name = memberName
	c.Dir = cfg.Dir
	c.BootstrapDefragThresholdMegabytes = defragmentFrom // parsing etcd's flags resets it to 0
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{nowhere}
	c.ListenClientHttpUrls = []url.URL{http} // a separate socket, because a socket for gRPC alone needs fewer resources
	c.ListenPeerUrls, c.AdvertisePeerUrls = nil, []url.URL{nowhere}
	c.InitialCluster = memberName + "=" + nowhere.String()
	// The only member waits ElectionMs before it elects itself at the start. etcd requires at least five ticks in this
	// time, and every tick costs processor time.
	c.TickMs, c.ElectionMs = 50, 250
	c.EnableGRPCGateway = false
	c.WarningUnaryRequestDuration = slowRequest
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logger())
	return c, nil
}

// logger logs warnings and errors to standard error, which is the log file of the process.
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

// Identity identifies a member, with the values of etcd's flags --name, --initial-advertise-peer-urls and
// --initial-cluster-token. A data directory that is restored from a snapshot must have the identity of the member that
// will use it.
type Identity struct{ Name, PeerURL, Token string }

// onlyMember returns the identity of every member that this package starts. A restore writes it into the new data
// directory, so it must equal the identity in the configuration of Start. [ApplyRestore] calls it through prepare.
func onlyMember() Identity {
	nowhere := url.URL{Scheme: "unix", Host: "localhost:0"}
	return Identity{Name: memberName, PeerURL: nowhere.String(), Token: embed.NewConfig().InitialClusterToken}
}

package container

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/moby/moby/client"

	"github.com/slipwayhq/slipway/internal/plane/custody"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
	"github.com/slipwayhq/slipway/internal/providers/local/backend/container/execs"
	"github.com/slipwayhq/slipway/internal/providers/local/backend/container/kernel"
	"github.com/slipwayhq/slipway/internal/providers/local/hostpath"
)

// callTimeout bounds one call to Docker. Creating a container from a large image takes a few seconds on a slow disk.
const callTimeout = 2 * time.Minute

// Engine is a Docker Engine. It implements all parts of a backend, and is safe for concurrent
// use. It connects when it is first used, so that a host without Docker is an error of the machines that
// need it and not of the program.
type Engine struct {
	api      *client.Client
	instance string
	custody  *custody.Book
	host     kernel.Host
	paths    hostpath.Guard
	named    []policy.Named
	// pod: this program runs in a Pod.
	pod bool

	// place is held while an address or a subnet is chosen and taken.
	place sync.Mutex
	// execs are the commands that this program runs for itself; their end is no news.
	execs execs.Set
	// restricted is set once the host has refused a privileged container.
	restricted onceTrue
}

var (
	_ backend.Networks = (*Engine)(nil)
	_ backend.Machines = (*Engine)(nil)
	_ backend.Scripts  = (*Engine)(nil)
	_ backend.Watcher  = (*Engine)(nil)
)

// Config says which engine to use and for whom.
type Config struct {
	// Instance names the management cluster; everything made on the host carries it as a label. Required.
	Instance string
	// Custody says what else is this instance's, and what is not any more. Nil: what carries its label is.
	Custody *custody.Book
	// Address of the engine, for example unix:///var/run/docker.sock. Empty: DOCKER_HOST, else Docker's default.
	Address string
	// Named are hosts that this host has to reach: no network takes their addresses.
	Named []policy.Named
	// Reserved are folders that no node may mount whoever allows it, such as the data directory.
	Reserved []string
}

// New returns the engine without connecting to it. It fails if the configuration or DOCKER_HOST cannot be read.
func New(cfg Config) (*Engine, error) {
	if cfg.Instance == "" {
		return nil, fmt.Errorf("container backend: no instance name")
	}
	opts := []client.Opt{client.FromEnv}
	if cfg.Address != "" {
		opts = append(opts, client.WithHost(cfg.Address))
	}
	api, err := client.New(opts...)
	if err != nil {
		return nil, fmt.Errorf("configuring the Docker client: %w", err)
	}
	book := cfg.Custody
	if book == nil {
		book = custody.Labels(cfg.Instance)
	}
	return &Engine{api: api, instance: cfg.Instance, custody: book, host: kernel.ThisHost(), paths: hostpath.Guard{Reserved: cfg.Reserved}, named: cfg.Named, pod: os.Getenv(inPod) != ""}, nil
}

// inPod is a variable that the kubelet sets in each container.
const inPod = "KUBERNETES_SERVICE_HOST"

// Close closes the connections to the engine.
func (e *Engine) Close() error { return e.api.Close() }

// Ping asks whether the engine answers. The error is a fault of kind Unreachable if not.
func (e *Engine) Ping(ctx context.Context) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	_, err := e.api.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true})
	return e.fault("asking Docker whether it answers", err)
}

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, callTimeout)
}

// onceTrue is a flag that is set and never cleared.
type onceTrue struct {
	mu  sync.Mutex
	set bool
}

func (o *onceTrue) get() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.set
}

func (o *onceTrue) raise() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.set = true
}

package container

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moby/moby/client"

	"github.com/slipwayhq/slipway/internal/controlplane/hosttransfer"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/policy"
)

// callTimeout bounds one call to Docker. Creating a container from a large image takes a few seconds on a slow disk.
const callTimeout = 2 * time.Minute

// Engine is the container backend on a Docker Engine. The provider (package local) has one; `slipway up --node`,
// `slipway move` and commands for nodes create others for the same instance. It is safe for concurrent use. It connects
// on first use, so that a missing Docker is an error of the machines that need it and not of the program.
type Engine struct {
	api       *client.Client
	instance  string
	ownership ownershipStore
	host      KernelHost
	paths     pathGuard
	named     []policy.ReachableHost
	// pod is set if this program runs in a Pod.
	pod bool

	// allocation is held while an address or a subnet is chosen and allocated.
	allocation sync.Mutex
	// creations counts the containers that this process has created.
	creations atomic.Int64
	// execs are the commands that this program runs for itself; events about their end are ignored.
	execs ownExecs
	// restricted is set once the host has refused a privileged container.
	restricted atomic.Bool
}

var (
	_ backend.Networks = (*Engine)(nil)
	_ backend.Machines = (*Engine)(nil)
	_ backend.Scripts  = (*Engine)(nil)
	_ backend.Watcher  = (*Engine)(nil)
)

// ownershipStore contains the methods of [hosttransfer.Store] that an Engine uses.
type ownershipStore interface {
	Ownership() (hosttransfer.Ownership, error)
	Prune(exists func(hosttransfer.Item) bool) error
}

// Config contains the options of an Engine.
type Config struct {
	// Instance names the management cluster. Every created resource is labelled with it. Required.
	Instance string
	// Ownership records the resources that were transferred to or from this instance. Nil: the label alone decides.
	Ownership *hosttransfer.Store
	// Address of the engine, for example unix:///var/run/docker.sock. Empty: DOCKER_HOST, else Docker's default.
	Address string
	// Named are hosts that this host has to reach: no network uses their addresses.
	Named []policy.ReachableHost
	// Reserved are directories that no node may mount even if the operator allows it, such as the data directory.
	Reserved []string
}

// New returns the engine without connecting to it. It returns an error if the configuration or DOCKER_HOST is invalid.
// Package local, `slipway move` and the commands that access nodes call it.
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
	book := cfg.Ownership
	if book == nil {
		book = hosttransfer.LabelsOnly(cfg.Instance)
	}
	return &Engine{api: api, instance: cfg.Instance, ownership: book, host: ThisHost(), paths: pathGuard{Reserved: cfg.Reserved}, named: cfg.Named, pod: os.Getenv(inPod) != ""}, nil
}

// inPod is a variable that the kubelet sets in each container.
const inPod = "KUBERNETES_SERVICE_HOST"

// Close closes the connections to the engine. Commands call it when they end.
func (e *Engine) Close() error { return e.api.Close() }

// Ping checks whether the engine responds. If it does not, the error is a fault of kind Unreachable. Only tests call
// it, before they need Docker.
func (e *Engine) Ping(ctx context.Context) error {
	ctx, cancel := withCallTimeout(ctx)
	defer cancel()
	_, err := e.api.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true})
	return e.fault("checking whether Docker responds", err)
}

func withCallTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, callTimeout)
}

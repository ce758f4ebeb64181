package simulated

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	simulatedstore "github.com/slipwayhq/slipway/internal/simulated/store"
)

// Config configures a server of simulated clusters. The manager fills it in from its own configuration.
type Config struct {
	// Dir is the folder for their state. Required.
	Dir string
	// Now is the clock, by default the system clock.
	Now func() time.Time
	// Objects is the maximum number of objects in one cluster. 0: no limit.
	Objects int
	// Memory is the memory of this process in bytes; the data of all clusters may use a fraction of it. 0: no limit.
	Memory int64
	// Log receives errors of background work.
	Log logr.Logger
}

// Spec is the desired state of a simulated control plane, from a HostedControlPlane or the Machines of a control plane.
// The backends fill it in.
type Spec struct {
	// Cluster is the Cluster of the control plane.
	Cluster types.NamespacedName
	// Version is the reported Kubernetes version, for example v1.36.3.
	Version string
	// Address is the host and port that the api server listens on.
	Address string
	// CACert and CAKey are the certificate authority of the cluster, in PEM.
	CACert, CAKey []byte
	// EtcdCert and EtcdKey are the certificate authority of its etcd. They are set if the control plane runs on
	// Machines with etcd members.
	EtcdCert, EtcdKey []byte
}

// Status is the status of a simulated control plane.
type Status struct {
	// Exists is false if there is neither a server nor stored state.
	Exists bool
	// Running is true if the control plane was started since this process began, Ready if it responds to requests.
	Running, Ready bool
	// Since is the start time, zero if it is not running.
	Since time.Time
	Spec  Spec
}

// Server serves simulated clusters. The manager creates one; the backends internal/hosted/simulated and
// internal/local/simulated start and remove control planes with it. It uses no resources until the first cluster is
// started.
type Server struct {
	cfg   Config
	ctx   context.Context
	store *simulatedstore.Store
	// ended is closed after the context is done and all state is written.
	ended chan struct{}

	once      sync.Once
	api       *api
	simulator *simulator
	err       error

	// Subscribers are notified of each control plane whose status may have changed.
	watches.Subscribers

	mu        sync.Mutex
	clusters  map[string]*cluster
	byCluster map[types.NamespacedName]*cluster
	reserved  map[string]net.Listener
}

// New returns a server that runs until the context is done. It then writes pending state and closes its listeners.
func New(ctx context.Context, cfg Config) *Server {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	var limits simulatedstore.Limits
	if cfg.Memory > 0 {
		limits = simulatedstore.LimitsForMemory(cfg.Memory)
	}
	limits.Objects = cfg.Objects
	s := &Server{
		cfg: cfg, ctx: ctx, store: simulatedstore.Open(cfg.Dir, cfg.Now, limits), ended: make(chan struct{}),
		clusters: map[string]*cluster{}, byCluster: map[types.NamespacedName]*cluster{},
		reserved: map[string]net.Listener{},
	}
	go func() {
		defer close(s.ended)
		s.store.Run(ctx, func(err error) { cfg.Log.Error(err, "writing the state of simulated clusters failed") })
		s.closeAll()
	}()
	return s
}

// Ended returns a channel that is closed after the context is done and all state is written. The manager waits for it
// before it exits.
func (s *Server) Ended() <-chan struct{} { return s.ended }

// prepare initializes the parts that all clusters share.
func (s *Server) prepare() error {
	s.once.Do(func() {
		if s.api, s.err = newAPI(s.ctx); s.err == nil {
			s.simulator = startSimulator(s.ctx, s.api, s.cfg.Log)
		}
	})
	if s.err != nil {
		return fmt.Errorf("preparing the API of simulated clusters: %w", s.err)
	}
	return nil
}

// Start starts a simulated control plane, or updates a running one. Backends call it also after a restart of the
// manager, which starts no control plane itself. It serves requests when Start returns.
func (s *Server) Start(name string, spec Spec) error {
	if err := s.prepare(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return errors.New("the server of simulated clusters has ended")
	}
	old := s.clusters[name]
	if old != nil && old.spec.equal(spec) {
		return nil
	}
	faults := &faults{now: s.cfg.Now}
	if old != nil {
		faults = old.faults
		s.drop(name)
	}
	listener, err := s.listener(name, spec.Address)
	if err != nil {
		return err
	}
	c, err := s.open(name, spec, faults)
	if err != nil {
		_ = listener.Close() // it was never used
		return err
	}
	c.serve(listener)
	s.clusters[name], s.byCluster[spec.Cluster] = c, c
	go s.Notify(name)
	return nil
}

// Remove stops a simulated control plane and removes its state. It succeeds if the control plane does not exist.
func (s *Server) Remove(name string) error {
	s.mu.Lock()
	s.drop(name)
	if l := s.reserved[name]; l != nil {
		_ = l.Close() // no client is connected
		delete(s.reserved, name)
	}
	s.mu.Unlock()
	if err := s.store.Remove(name); err != nil {
		return err
	}
	s.Notify(name)
	return nil
}

// drop stops the server of a cluster. The lock must be held.
func (s *Server) drop(name string) {
	c := s.clusters[name]
	if c == nil {
		return
	}
	c.close()
	delete(s.clusters, name)
	if s.byCluster[c.spec.Cluster] == c {
		delete(s.byCluster, c.spec.Cluster)
	}
}

func (s *Server) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.clusters {
		s.drop(name)
	}
	for name, l := range s.reserved {
		_ = l.Close() // no client is connected
		delete(s.reserved, name)
	}
}

// Status returns the status of a simulated control plane. Both backends report it.
func (s *Server) Status(name string) Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clusters[name]
	if c == nil {
		return Status{Exists: s.store.Exists(name)}
	}
	return c.status()
}

// Names returns the names of the running simulated control planes. The backend of HostedControlPlanes counts them, and
// the backend of Machines starts its watch with them.
func (s *Server) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.clusters))
}

// StatusOf returns the status of the running simulated control plane of a Cluster. The backend of simulated Machines
// calls it.
func (s *Server) StatusOf(cluster types.NamespacedName) Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.byCluster[cluster]; c != nil {
		return c.status()
	}
	return Status{}
}

// Workload returns a client with full access that bypasses the network, and the context to use for its calls to a
// Cluster. The client is nil while no simulated control plane of the Cluster is running. The backend of simulated
// Machines writes Nodes and Pods with it.
func (s *Server) Workload(ctx context.Context, cluster types.NamespacedName) (context.Context, kubernetes.Interface) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.byCluster[cluster]; c != nil {
		return withTenant(ctx, c.tenant), s.api.Client()
	}
	return ctx, nil
}

// Notes returns the notes of a Cluster, which exist as long as its objects. It returns nil while no simulated control
// plane of the Cluster is running.
func (s *Server) Notes(cluster types.NamespacedName) *Notes {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.byCluster[cluster]; c != nil {
		return &Notes{c.tenant.Keys}
	}
	return nil
}

// Etcd returns the etcd of a Cluster whose control plane runs on Machines, or nil if it is not running or has no etcd.
// The backend of simulated Machines calls it.
func (s *Server) Etcd(cluster types.NamespacedName) *simulatedstore.EtcdCluster {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.byCluster[cluster]; c != nil {
		return c.etcd
	}
	return nil
}

// SetFaults changes the faults of a simulated control plane. Faults are not persisted. The backend of simulated
// HostedControlPlanes calls it when an annotation changes the faults.
func (s *Server) SetFaults(name string, f Faults) {
	s.mu.Lock()
	c := s.clusters[name]
	s.mu.Unlock()
	if c == nil {
		return
	}
	if again := c.faults.set(f); again != 0 {
		c.closeConnections()
		go s.Notify(name)
		if again > 0 {
			time.AfterFunc(again, func() { s.Notify(name) })
		}
	}
}

// Faults returns the faults of a running simulated control plane.
func (s *Server) Faults(name string) Faults {
	s.mu.Lock()
	c := s.clusters[name]
	s.mu.Unlock()
	if c == nil {
		return Faults{}
	}
	return c.faults.current()
}

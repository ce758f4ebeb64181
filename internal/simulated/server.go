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

	"github.com/slipwayhq/slipway/internal/simulated/api"
	"github.com/slipwayhq/slipway/internal/simulated/behaviour"
	"github.com/slipwayhq/slipway/internal/simulated/etcd"
	"github.com/slipwayhq/slipway/internal/simulated/store"
)

// Config says how to serve simulated clusters.
type Config struct {
	// Dir is the folder of their state. Required.
	Dir string
	// Now is the clock; nil: the system's.
	Now func() time.Time
	// Objects is how many one cluster may have. 0: no limit.
	Objects int
	// Memory of this process in bytes, which what all clusters have is a part of. 0: no limit.
	Memory int64
	// Log receives what goes wrong behind the scenes.
	Log logr.Logger
}

// Spec says what a simulated control plane is to be.
type Spec struct {
	// Cluster is the Cluster it belongs to.
	Cluster types.NamespacedName
	// Version of Kubernetes that it says it has, for example v1.36.3.
	Version string
	// Address it listens at, host and port.
	Address string
	// CACert and CAKey are the cluster's authority, in PEM.
	CACert, CAKey []byte
	// EtcdCert and EtcdKey are the authority of its etcd, where its control plane runs on machines with members.
	EtcdCert, EtcdKey []byte
}

// Status of a simulated control plane.
type Status struct {
	// Exists is false where there is neither a server nor state.
	Exists bool
	// Running tells that it was started since this program began, Ready that it answers.
	Running, Ready bool
	// Since is when it was started; zero: not.
	Since time.Time
	Spec  Spec
}

// Server serves simulated clusters. It costs nothing until the first is started.
type Server struct {
	cfg   Config
	ctx   context.Context
	store *store.Store
	// ended is closed when everything is written after the context has ended.
	ended chan struct{}

	once sync.Once
	api  *api.API
	life *behaviour.Life
	err  error

	mu        sync.Mutex
	clusters  map[string]*cluster
	byCluster map[types.NamespacedName]*cluster
	reserved  map[string]net.Listener
	told      map[int]func(name string)
	nextTold  int
}

// New returns a server that ends with the context: then its listeners are closed and what is not yet written is.
func New(ctx context.Context, cfg Config) *Server {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	var limits store.Limits
	if cfg.Memory > 0 {
		limits = store.Within(cfg.Memory)
	}
	limits.Objects = cfg.Objects
	s := &Server{
		cfg: cfg, ctx: ctx, store: store.Open(cfg.Dir, cfg.Now, limits), ended: make(chan struct{}),
		clusters: map[string]*cluster{}, byCluster: map[types.NamespacedName]*cluster{},
		reserved: map[string]net.Listener{}, told: map[int]func(string){},
	}
	go func() {
		defer close(s.ended)
		s.store.Run(ctx, func(err error) { cfg.Log.Error(err, "state of simulated clusters is not written") })
		s.closeAll()
	}()
	return s
}

// Ended is closed after the context has ended and everything is written.
func (s *Server) Ended() <-chan struct{} { return s.ended }

// prepare makes what all clusters have in common.
func (s *Server) prepare() error {
	s.once.Do(func() {
		if s.api, s.err = api.New(s.ctx); s.err == nil {
			s.life = behaviour.Start(s.ctx, s.api, s.cfg.Log)
		}
	})
	if s.err != nil {
		return fmt.Errorf("preparing the API of simulated clusters: %w", s.err)
	}
	return nil
}

// Start starts a simulated control plane, or changes the one that runs. It answers when Start returns.
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
	c.serve(s.ctx, listener)
	s.clusters[name], s.byCluster[spec.Cluster] = c, c
	go s.tell(name)
	return nil
}

// Remove ends a simulated control plane and removes its state. One that does not exist is no error.
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
	s.tell(name)
	return nil
}

// drop closes a cluster's server. The lock is held.
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

// Status returns what is known of a simulated control plane.
func (s *Server) Status(name string) Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clusters[name]
	if c == nil {
		return Status{Exists: s.store.Exists(name)}
	}
	return c.status()
}

// Names returns the names of the simulated control planes that run.
func (s *Server) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.clusters))
}

// StatusOf returns what is known of the simulated control plane of a Cluster that runs.
func (s *Server) StatusOf(cluster types.NamespacedName) Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.byCluster[cluster]; c != nil {
		return c.status()
	}
	return Status{}
}

// Workload returns a client without a connection and with every right, and the context that its calls about a Cluster
// need; nil while no simulated control plane of the Cluster runs.
func (s *Server) Workload(ctx context.Context, cluster types.NamespacedName) (context.Context, kubernetes.Interface) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.byCluster[cluster]; c != nil {
		return api.Into(ctx, c.tenant), s.api.Client()
	}
	return ctx, nil
}

// Notes returns the place for notes about a Cluster that last as long as its objects; nil while no simulated control
// plane of the Cluster runs.
func (s *Server) Notes(cluster types.NamespacedName) *Notes {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.byCluster[cluster]; c != nil {
		return &Notes{c.tenant.Keys}
	}
	return nil
}

// Etcd returns the etcd of a Cluster whose control plane runs on machines; nil while it does not run, or has none.
func (s *Server) Etcd(cluster types.NamespacedName) *etcd.Cluster {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.byCluster[cluster]; c != nil {
		return c.etcd
	}
	return nil
}

// SetFaults changes what is wrong with a simulated control plane. It is forgotten when this program ends.
func (s *Server) SetFaults(name string, f Faults) {
	s.mu.Lock()
	c := s.clusters[name]
	s.mu.Unlock()
	if c == nil {
		return
	}
	if again := c.faults.set(f); again != 0 {
		c.hangUp()
		go s.tell(name)
		if again > 0 {
			time.AfterFunc(again, func() { s.tell(name) })
		}
	}
}

// Faults returns what is wrong with a simulated control plane that runs.
func (s *Server) Faults(name string) Faults {
	s.mu.Lock()
	c := s.clusters[name]
	s.mu.Unlock()
	if c == nil {
		return Faults{}
	}
	return c.faults.current()
}

// Subscribe calls tell with the name of each control plane whose status may have changed, until cancel is called.
func (s *Server) Subscribe(tell func(name string)) (cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.nextTold
	s.nextTold++
	s.told[id] = tell
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.told, id)
	}
}

func (s *Server) tell(name string) {
	s.mu.Lock()
	var told []func(string)
	for _, f := range s.told {
		told = append(told, f)
	}
	s.mu.Unlock()
	for _, f := range told {
		f(name)
	}
}

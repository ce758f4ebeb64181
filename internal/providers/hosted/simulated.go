package hosted

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/plane/workload"
	"github.com/slipwayhq/slipway/internal/simulated"
)

// Simulation is the Processes of simulated control planes.
type Simulation interface {
	Processes
	// Reserve returns an endpoint that is free, always the same for a name.
	Reserve(ctx context.Context, name string) (clusterv1.APIEndpoint, error)
	// Break makes something go wrong with a control plane that runs.
	Break(ctx context.Context, name string, f Faults) error
}

// Faults is what is wrong with a simulated control plane on purpose: see the annotations in api/controlplane.
type Faults struct {
	// Down is how long the API server is unreachable; negative: for as long as the annotation is there.
	Down time.Duration
	// Slow is how long it takes to answer.
	Slow time.Duration
	// Status is the code of the HTTP error that it answers with; zero: no error.
	Status int
}

// Simulated is the Simulation of a server of simulated clusters.
type Simulated struct {
	server *simulated.Server

	mu sync.Mutex
	// hashes are the configurations that were asked for since this program started, by name; faults likewise.
	hashes map[string]string
	faults map[string]Faults
}

// NewSimulated returns the control planes of the server.
func NewSimulated(s *simulated.Server) *Simulated {
	return &Simulated{server: s, hashes: map[string]string{}, faults: map[string]Faults{}}
}

// Status implements Processes.
func (p *Simulated) Status(_ context.Context, name string) (Process, error) {
	st := p.server.Status(name)
	p.mu.Lock()
	defer p.mu.Unlock()
	out := Process{Exists: st.Exists, Running: st.Running, Ready: st.Ready, EtcdReady: st.Running, Since: st.Since, Version: st.Spec.Version}
	if st.Running {
		out.Config, out.Faults = p.hashes[name], p.faults[name]
	}
	return out, nil
}

// Start implements Processes. The control plane answers when it returns.
func (p *Simulated) Start(_ context.Context, name string, cfg workload.Config, files map[string][]byte) error {
	namespace, _, _ := strings.Cut(name, ".")
	err := p.server.Start(name, simulated.Spec{
		Cluster: types.NamespacedName{Namespace: namespace, Name: cfg.Cluster}, Version: cfg.Version, Address: cfg.Endpoint,
		CACert: files[workload.CA+".crt"], CAKey: files[workload.CA+".key"],
	})
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hashes[name] = cfg.Hash()
	return nil
}

// Remove implements Processes.
func (p *Simulated) Remove(_ context.Context, name string) error {
	p.mu.Lock()
	delete(p.hashes, name)
	delete(p.faults, name)
	p.mu.Unlock()
	return p.server.Remove(name)
}

// Count implements Processes.
func (p *Simulated) Count(_ context.Context, namespace string) (own, all int, err error) {
	names := p.server.Names()
	for _, name := range names {
		if strings.HasPrefix(name, namespace+".") {
			own++
		}
	}
	return own, len(names), nil
}

// Source implements Processes.
func (p *Simulated) Source(to func(name string) []reconcile.Request) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		cancel := p.server.Subscribe(func(name string) {
			for _, request := range to(name) {
				queue.Add(request)
			}
		})
		context.AfterFunc(ctx, cancel)
		return nil
	})
}

// Reserve implements Simulation.
func (p *Simulated) Reserve(_ context.Context, name string) (clusterv1.APIEndpoint, error) {
	port, err := p.server.Reserve(name)
	return clusterv1.APIEndpoint{Host: simulated.Host, Port: int32(port)}, err
}

// Break implements Simulation.
func (p *Simulated) Break(_ context.Context, name string, f Faults) error {
	p.mu.Lock()
	p.faults[name] = f
	p.mu.Unlock()
	p.server.SetFaults(name, simulated.Faults{Down: f.Down, Slow: f.Slow, Status: f.Status})
	return nil
}

// simulated reports whether nothing runs for the control plane.
func (s Snapshot) simulated() bool { return s.Plane.Spec.Backend.Simulated != nil }

// faultsOf is what the annotations ask for.
func faultsOf(plane *hostedv1.HostedControlPlane) Faults {
	length := func(annotation string) time.Duration {
		d, err := time.ParseDuration(plane.Annotations[annotation])
		if err != nil || d < 0 {
			return 0
		}
		return d
	}
	f := Faults{Down: length(hostedv1.APIDownAnnotation), Slow: length(hostedv1.APISlowAnnotation)}
	if plane.Annotations[hostedv1.APIDownAnnotation] == "always" {
		f.Down = -1
	}
	if code, err := strconv.Atoi(plane.Annotations[hostedv1.APIErrorsAnnotation]); err == nil && code >= 400 && code <= 599 {
		f.Status = code
	}
	return f
}

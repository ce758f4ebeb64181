package simulated

import (
	"context"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/hosted/backend"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/simulated"
)

// simulatedControlPlanes are the control planes of a server of simulated clusters. It implements backend.ControlPlanes
// and backend.Endpoints, whose methods the HostedControlPlane controller calls.
type simulatedControlPlanes struct {
	server *simulated.Server

	mu sync.Mutex
	// hashes are the hashes of the configurations since the start of this program, by name.
	hashes map[string]string
}

// New returns the backend of the server, without faults. The manager calls it at its start, and adds faults with
// [WithFaults].
func New(s *simulated.Server) backend.Backend {
	c := &simulatedControlPlanes{server: s, hashes: map[string]string{}}
	return backend.Backend{ControlPlanes: c, Endpoints: c}
}

func (c *simulatedControlPlanes) Capabilities(allowed policy.Configuration) backend.Capabilities {
	first, last := simulated.Ports()
	return backend.Capabilities{
		Kind: "simulated", AnyVersion: true, OwnEndpoints: &backend.EndpointRange{Host: simulated.Host, First: first, Last: last},
		Started: &backend.ControlPlane{Exists: true, Running: true, Ready: true, EtcdReady: true},
		Denied:  allowed.DeniedSimulated(), Maximum: allowed.Maxima.SimulatedControlPlanes, Setting: "maxima.simulatedControlPlanes",
		RunningReason: "Simulated", RestartEffect: "it continues with its stored state",
		EmptyStartEffect: "it starts empty, and simulated machines create their Nodes again",
	}
}

func (c *simulatedControlPlanes) Status(_ context.Context, name string) (backend.ControlPlane, error) {
	st := c.server.Status(name)
	out := backend.ControlPlane{Exists: st.Exists, Running: st.Running, Ready: st.Ready, EtcdReady: st.Running, Since: st.Since, Version: st.Spec.Version}
	out.Data.Exists = st.Exists
	if st.Running {
		c.mu.Lock()
		defer c.mu.Unlock()
		out.Config = c.hashes[name]
	}
	return out, nil
}

// Start implements backend.ControlPlanes. The control plane is ready when it returns.
func (c *simulatedControlPlanes) Start(_ context.Context, name string, cfg processconfig.Config, files map[string][]byte) error {
	namespace, _, _ := strings.Cut(name, ".")
	err := c.server.Start(name, simulated.Spec{
		Cluster: types.NamespacedName{Namespace: namespace, Name: cfg.Cluster}, Version: cfg.Version, Address: cfg.Endpoint,
		CACert: files[processconfig.CA+".crt"], CAKey: files[processconfig.CA+".key"],
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hashes[name] = cfg.Hash()
	return nil
}

func (c *simulatedControlPlanes) Remove(_ context.Context, name string) error {
	c.mu.Lock()
	delete(c.hashes, name)
	c.mu.Unlock()
	return c.server.Remove(name)
}

func (c *simulatedControlPlanes) Count(_ context.Context, namespace string) (own, all int, err error) {
	names := c.server.Names()
	for _, name := range names {
		if strings.HasPrefix(name, namespace+".") {
			own++
		}
	}
	return own, len(names), nil
}

// Subscribe implements backend.ControlPlanes. It does not report control planes that run on machines of the
// same server: without a HostedControlPlane of their name they would be removed as orphans.
func (c *simulatedControlPlanes) Subscribe(changed func(name string)) (cancel func()) {
	return c.server.Subscribe(func(name string) {
		if !simulated.RunsOnMachines(name) {
			changed(name)
		}
	})
}

func (c *simulatedControlPlanes) Reserve(_ context.Context, name string, _ clusterv1.APIEndpoint) (clusterv1.APIEndpoint, error) {
	port, err := c.server.Reserve(name)
	return clusterv1.APIEndpoint{Host: simulated.Host, Port: int32(port)}, err
}

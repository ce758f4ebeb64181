package hosted

import (
	"context"
	"sync"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/providers/hosted/addons"
)

// Addons is how the add-ons of a workload cluster fared when they were last read.
type Addons struct {
	addons.State
	// At is when they were read; zero: not since this program began.
	At time.Time
	// Err says why they could not be read then; empty: they could.
	Err string
}

// InspectAddons asks how the add-ons fare.
type InspectAddons struct{}

// String returns the question.
func (InspectAddons) String() string { return "read how the add-ons of the workload cluster fare" }

// How old an answer may be: nothing tells of a change, because the controller watches no workload cluster.
const (
	goodFor = 2 * time.Minute
	badFor  = 20 * time.Second
)

// decideAddons asks again when the last answer is old.
func decideAddons(s Snapshot, p *loop.Plan) {
	spec := s.Plane.Spec.Addons
	if s.simulated() || spec.CoreDNS.Disabled && spec.KubeProxy.Disabled {
		return
	}
	lasts := badFor
	if s.Addons.State == (addons.State{}) && s.Addons.Err == "" {
		lasts = goodFor
	}
	if left := s.Addons.At.Add(lasts).Sub(s.Now); !s.Addons.At.IsZero() && left > 0 {
		p.RecheckIn(left)
		return
	}
	p.Ask = append(p.Ask, InspectAddons{})
}

func (c *Controller) inspectAddons(ctx context.Context, s Snapshot) (Addons, error) {
	a := Addons{At: s.Now}
	config, err := access(s)
	if err == nil {
		c.limitCalls(config, s.Cluster)
		a.State, err = c.inspect(ctx, config, addonsOf(s, endpointOf(s)))
	}
	if err != nil {
		if fault.KindOf(err) == fault.Bug || ctx.Err() != nil {
			return a, err
		}
		a.Err = "The add-ons of the workload cluster cannot be read, retrying"
	}
	c.addons.set(nameOf(s.Plane), a)
	return a, nil
}

// addonStates remembers how add-ons fared, by control plane.
type addonStates struct {
	mu   sync.Mutex
	last map[string]Addons
}

func (m *addonStates) get(name string) Addons {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last[name]
}

func (m *addonStates) set(name string, a Addons) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil {
		m.last = map[string]Addons{}
	}
	m.last[name] = a
}

func (m *addonStates) forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.last, name)
}

package hosted

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/providers/hosted/addons"
	"github.com/slipwayhq/slipway/internal/providers/hosted/backend"
	"github.com/slipwayhq/slipway/internal/remote"
)

// Addons is how the add-ons of a workload cluster fared when they were last read.
type Addons struct {
	addons.State
	// At is when they were read; zero: not since this program began.
	At time.Time
	// Err says why they could not be read then; empty: they could.
	Err string
	// Outdated: they changed since.
	Outdated bool
}

// InspectAddons asks how the add-ons fare.
type InspectAddons struct{}

// String returns the question.
func (InspectAddons) String() string { return "read how the add-ons of the workload cluster fare" }

// How old an answer may be. Without a change it is read again, too, since a workload cluster may not be connected, or refuse
// to be watched; with many changes it is not read for each.
const (
	goodFor    = 2 * time.Minute
	badFor     = 20 * time.Second
	changedFor = time.Second
)

// decideAddons asks again when the last answer is old, or the add-ons changed.
func decideAddons(s Snapshot, p *loop.Plan) {
	if !hasAddons(s.Terms, s.Plane) {
		return
	}
	lasts := badFor
	switch {
	case s.Addons.Outdated:
		lasts = changedFor
	case s.Addons.State == (addons.State{}) && s.Addons.Err == "":
		lasts = goodFor
	}
	if left := s.Addons.At.Add(lasts).Sub(s.Now); !s.Addons.At.IsZero() && left > 0 {
		p.RecheckIn(left)
		return
	}
	p.Ask = append(p.Ask, InspectAddons{})
}

// hasAddons reports whether the workload cluster has add-ons that this controller applies.
func hasAddons(t backend.Terms, plane *hostedv1.HostedControlPlane) bool {
	spec := plane.Spec.Addons
	return t.Addons && (!spec.CoreDNS.Disabled || !spec.KubeProxy.Disabled)
}

func (c *Controller) inspectAddons(ctx context.Context, s Snapshot) (Addons, error) {
	a, changes := Addons{At: s.Now}, c.addons.begin(nameOf(s.Plane))
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
	c.addons.set(nameOf(s.Plane), a, changes)
	return a, nil
}

// WatchedAddons limits the watches on workload clusters to the objects that tell how add-ons fare: a workload cluster may have
// any number of others of their kinds.
func WatchedAddons() map[client.Object]cache.ByObject {
	named := func(name string) cache.ByObject {
		return cache.ByObject{
			Namespaces: map[string]cache.Config{metav1.NamespaceSystem: {}}, Field: fields.OneTermEqualSelector("metadata.name", name),
		}
	}
	return map[client.Object]cache.ByObject{&appsv1.DaemonSet{}: named(addons.KubeProxy), &appsv1.Deployment{}: named(addons.CoreDNS)}
}

// watchAddons makes changes of the add-ons enqueue their control plane, as soon as the workload cluster is connected.
func (c *Controller) watchAddons(ctx context.Context, s Snapshot) error {
	if c.workloads == nil || !s.Process.Ready || !hasAddons(s.Terms, s.Plane) {
		return nil
	}
	name, request := nameOf(s.Plane), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s.Plane)}
	for _, kind := range []client.Object{&appsv1.DaemonSet{}, &appsv1.Deployment{}} {
		err := c.workloads.Watch(ctx, client.ObjectKeyFromObject(s.Cluster), remote.WatchRequest{
			Controller: Name, Kind: kind, Changed: addonMatters,
			Map: func(context.Context, client.Object) []reconcile.Request {
				c.addons.changed(name)
				return []reconcile.Request{request}
			},
		})
		if fault.KindOf(err) == fault.Unreachable { // ofConnection enqueues
			return nil
		}
		if err != nil {
			return fmt.Errorf("watching the add-ons of the workload cluster: %w", err)
		}
	}
	return nil
}

// addonMatters drops the changes of an add-on after which it fares as before.
func addonMatters(before, after client.Object) bool {
	if before.GetGeneration() != after.GetGeneration() {
		return true
	}
	switch b := before.(type) {
	case *appsv1.DaemonSet:
		return !reflect.DeepEqual(b.Status, after.(*appsv1.DaemonSet).Status)
	case *appsv1.Deployment:
		return !reflect.DeepEqual(b.Status, after.(*appsv1.Deployment).Status)
	}
	return false
}

// ofConnection enqueues the control plane whose add-ons can be watched, or not any more.
func (c *Controller) ofConnection(ctx context.Context, cluster client.ObjectKey) []reconcile.Request {
	o := &clusterv1.Cluster{}
	if c.client.Get(ctx, cluster, o, client.UnsafeDisableDeepCopy) != nil { // gone
		return nil
	}
	requests := ofCluster(ctx, o)
	if len(requests) == 0 {
		return nil
	}
	plane := &hostedv1.HostedControlPlane{}
	if c.client.Get(ctx, requests[0].NamespacedName, plane, client.UnsafeDisableDeepCopy) != nil {
		return nil
	}
	if b, err := c.backendOf(plane); err != nil || !hasAddons(b.ControlPlanes.Terms(c.policy), plane) {
		return nil
	}
	return requests
}

// addonStates remembers how add-ons fared, by control plane.
type addonStates struct {
	mu sync.Mutex
	of map[string]addonState
}

// addonState is the last answer, and how many changes were known of when it was given and are now.
type addonState struct {
	last            Addons
	answered, known int
}

func (m *addonStates) get(name string) Addons {
	m.mu.Lock()
	defer m.mu.Unlock()
	have := m.of[name]
	have.last.Outdated = have.answered != have.known
	return have.last
}

// begin returns what to set the answer with: a change while the add-ons are read may be missing in it.
func (m *addonStates) begin(name string) (changes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.of == nil {
		m.of = map[string]addonState{}
	}
	have := m.of[name]
	m.of[name] = have
	return have.known
}

func (m *addonStates) set(name string, a Addons, changes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	have := m.of[name]
	have.last, have.answered = a, changes
	m.of[name] = have
}

// changed notes a change; what was never read is not out of date.
func (m *addonStates) changed(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if have, ok := m.of[name]; ok {
		have.known++
		m.of[name] = have
	}
}

func (m *addonStates) forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of, name)
}

package machine

import (
	"context"
	"hash/fnv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/membership"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
)

// simulated wakes the machines of a cluster whose control plane starts.
func (c *Controller) simulated() source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		cancel := c.simulation.Subscribe(func(cluster types.NamespacedName) {
			for _, request := range c.ofSimulated(ctx, cluster) {
				queue.Add(request)
			}
		})
		context.AfterFunc(ctx, cancel)
		return nil
	})
}

func (c *Controller) ofSimulated(ctx context.Context, cluster types.NamespacedName) []reconcile.Request {
	var list infrav1.LocalMachineList
	if err := c.client.List(ctx, &list, membership.InCluster(Name, cluster)...); err != nil {
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if list.Items[i].Spec.Backend.Simulated != nil {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}

// observeSimulated asks for the simulated machine once its cluster may have one.
func (c *Controller) observeSimulated(ctx context.Context, s Snapshot) (Snapshot, error) {
	if c.simulation == nil {
		s.Fault = fault.New(fault.Unreachable, "SimulationNotOffered", "this process simulates no machines")
		return s, nil
	}
	if err := c.observeCrowd(ctx, &s); err != nil {
		return s, err
	}
	m, err := c.simulation.Inspect(ctx, s.workload(), s.hostname())
	if err != nil {
		if s.Fault = fault.As(err); s.Fault == nil || s.Fault.Kind != fault.Unreachable {
			return s, err
		}
	}
	if m.Owner != s.Object.UID && s.Object.Spec.ProviderID == "" {
		m = backend.SimulatedMachine{} // what an earlier object of this name left
	}
	s.Simulated = m
	return s, nil
}

// observeCrowd counts the simulated machines, unless this one is among them.
func (c *Controller) observeCrowd(ctx context.Context, s *Snapshot) error {
	if err := c.crowd.seed(ctx, c.client); err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(s.Object)
	if !s.Object.DeletionTimestamp.IsZero() {
		c.crowd.leave(key)
		return nil
	}
	s.Room = c.crowd.room(key)
	return nil
}

// simulate carries out an action on a simulated machine.
func (c *Controller) simulate(ctx context.Context, s Snapshot, action loop.Action) error {
	switch action.(type) {
	case Boot, Join:
		if why := c.crowd.enter(client.ObjectKeyFromObject(s.Object), s.Policy.Maxima.SimulatedNodes); why != "" {
			return fault.New(fault.Invalid, reasonDenied, "%s", why)
		}
	}
	switch a := action.(type) {
	case Boot:
		return c.simulation.Boot(ctx, s.workload(), backend.SimulatedNode{Name: a.Name, Owner: s.Object.UID, At: s.Now})
	case Join:
		return c.simulation.Join(ctx, s.workload(), backend.SimulatedNode{
			Owner: s.Object.UID, Name: a.Name, ProviderID: backend.ProviderID(s.Name), Version: s.version(),
			Zone: s.failureDomain(), Address: backend.SimulatedAddress(s.Name), At: s.Now,
		})
	case SetReady:
		return c.simulation.SetReady(ctx, s.workload(), a.Name, a.Ready)
	case Leave:
		return c.simulation.Remove(ctx, s.workload(), a.Name)
	}
	return fault.New(fault.Bug, "UnknownAction", "the local machine controller does not know how to %s", action)
}

// simulated reports whether the machine is nothing but a Node.
func (s Snapshot) simulated() bool { return s.Object.Spec.Backend.Simulated != nil }

// workload is the Cluster that the machine belongs to.
func (s Snapshot) workload() types.NamespacedName {
	return types.NamespacedName{Namespace: s.Object.Namespace, Name: s.Object.Labels[clusterv1.ClusterNameLabel]}
}

func (s Snapshot) hostname() string { return backend.Hostname(s.Object.Name) }

// startup is how long the machine takes to start: the delay and its own part of the jitter.
func (s Snapshot) startup() time.Duration {
	spec := s.Object.Spec.Backend.Simulated
	delay, jitter := spec.StartupDelay.Length(), spec.Jitter.Length()
	if jitter <= 0 {
		return delay
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(s.Object.UID)) // never fails
	const parts = 1000
	return delay + jitter*time.Duration(sum.Sum32()%(parts+1))/parts
}

// neverBoots reports whether an annotation keeps the machine from starting.
func (s Snapshot) neverBoots() bool {
	value, ok := s.Object.Annotations[infrav1.NeverBootsAnnotation]
	return ok && value != "false"
}

// notReadyAfter is when an annotation makes the Node not ready, and false if none does.
func (s Snapshot) notReadyAfter() (time.Duration, bool) {
	value, ok := s.Object.Annotations[infrav1.NotReadyAfterAnnotation]
	if !ok {
		return 0, false
	}
	d, err := time.ParseDuration(value)
	return d, err == nil && d >= 0
}

package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/bench/follow"
	"github.com/slipwayhq/slipway/test/bench/settle"
	"github.com/slipwayhq/slipway/test/bench/template"
)

// label is one that belongs on the Node of a Machine (MA-11). Its value counts the changes.
const label = "isolation.node.cluster.x-k8s.io/change"

// arriveWithin is how long the last changes of a phase get to arrive on their Nodes.
const arriveWithin = time.Minute

// change is one that has not arrived on the Node.
type change struct {
	began time.Time
	// accepted is when the management cluster showed it; zero: it did not.
	accepted time.Time
}

// lapse is how long a change took.
type lapse struct {
	// whole is the time from the moment it was asked for until the Node showed it.
	whole time.Duration
	// own is the part of it after the management cluster had shown it, which is Slipway's.
	own time.Duration
}

// probe is a cluster whose Machines are changed.
type probe struct {
	cluster  int
	machines []string
	// measured: it is known when changes arrive.
	measured bool

	mu      sync.Mutex
	changes int
	// pending are the changes that have not arrived, by their number.
	pending map[int]*change
	took    []lapse
}

func newProbe(cluster int, machines []string, measured bool) *probe {
	return &probe{cluster: cluster, machines: machines, measured: measured, pending: map[int]*change{}}
}

// begin notes that the next change begins, and returns its number.
func (p *probe) begin(now time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changes++
	if p.measured {
		p.pending[p.changes] = &change{began: now}
	}
	return p.changes
}

// accepted notes that the management cluster shows a change, and with it those before.
func (p *probe) accepted(number int, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n, c := range p.pending {
		if n <= number && c.accepted.IsZero() {
			c.accepted = now
		}
	}
}

// arrived notes that a Node shows a change. Those before it that it replaced have arrived too. One that arrives before it
// was seen in the management cluster, by another watch, took none of the time after.
func (p *probe) arrived(number int, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n, c := range p.pending {
		if n > number {
			continue
		}
		l := lapse{whole: now.Sub(c.began)}
		if !c.accepted.IsZero() {
			l.own = now.Sub(c.accepted)
		}
		p.took = append(p.took, l)
		delete(p.pending, n)
	}
}

// left is how many changes have not arrived.
func (p *probe) left() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pending)
}

// harvest returns how long the changes took since the last harvest.
func (p *probe) harvest() []lapse {
	p.mu.Lock()
	defer p.mu.Unlock()
	took := p.took
	p.took = nil
	return took
}

// probes of all clusters. The Nodes of those that are to stay well are watched, and the Machines.
func (f *fleet) probes(ctx context.Context) ([]*probe, error) {
	var out []*probe
	measured := map[string]*probe{}
	for n := range f.clusters {
		machines, err := f.machines(ctx, n)
		if err != nil {
			return nil, err
		}
		p := newProbe(n, machines, !f.isSick(n))
		out = append(out, p)
		if !p.measured {
			continue
		}
		for _, m := range machines {
			measured[m] = p
		}
		config, err := follow.Workload(ctx, f.pair.Config, types.NamespacedName{Namespace: f.template.Namespace, Name: template.Cluster(n)})
		if err != nil {
			return nil, err
		}
		if err := watch(ctx, config, follow.Nodes(), "", func(_ string, number int) { p.arrived(number, time.Now()) }); err != nil {
			return nil, fmt.Errorf("watch the Nodes of cluster %s: %w", template.Cluster(n), err)
		}
	}
	err := watch(ctx, f.pair.Config, follow.Core("machines"), f.template.Namespace, func(name string, number int) {
		if p := measured[name]; p != nil {
			p.accepted(number, time.Now())
		}
	})
	if err != nil {
		return nil, fmt.Errorf("watch the Machines: %w", err)
	}
	return out, nil
}

// watch calls a function with the name of each object that is updated and the number of its last change, until ctx ends.
func watch(ctx context.Context, config *rest.Config, resource schema.GroupVersionResource, namespace string, updated func(name string, number int)) error {
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(c, resource, namespace, 0, cache.Indexers{}, nil).Informer()
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, o any) {
		object := o.(*unstructured.Unstructured)
		if number, err := strconv.Atoi(object.GetLabels()[label]); err == nil {
			updated(object.GetName(), number)
		}
	}})
	if err != nil {
		return err
	}
	go informer.Run(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return ctx.Err()
	}
	return nil
}

// load changes a Machine of every cluster at a steady rate and waits until the changes of those that are well have
// arrived. It returns how long they took.
func (f *fleet) load(ctx context.Context, probes []*probe) ([]lapse, error) {
	until := time.Now().Add(f.phase)
	group, changing := errgroup.WithContext(ctx)
	for i, p := range probes {
		group.Go(func() error {
			offset := f.every * time.Duration(i) / time.Duration(len(probes)) // one after the other
			return f.change(changing, p, time.Now().Add(offset), until)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var took []lapse
	limited, cancel := context.WithTimeout(ctx, arriveWithin)
	defer cancel()
	for _, p := range probes {
		for p.left() > 0 {
			if err := settle.Pause(limited, look); err != nil {
				return nil, fmt.Errorf("changes of %d Machines of cluster %s, which is well, do not arrive: %w",
					p.left(), template.Cluster(p.cluster), err)
			}
		}
		took = append(took, p.harvest()...)
	}
	return took, nil
}

// change changes the Machines of a cluster in turn, from one time to another.
func (f *fleet) change(ctx context.Context, p *probe, from, until time.Time) error {
	for i := 0; from.Before(until); i++ {
		if err := settle.Pause(ctx, max(0, time.Until(from))); err != nil {
			return err
		}
		m := f.template.Object(follow.Kind("Machine"), p.machines[i%len(p.machines)])
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"%d"}}}`, label, p.begin(time.Now()))
		if err := f.client.Patch(ctx, m, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return fmt.Errorf("change Machine %s: %w", m.GetName(), err)
		}
		from = from.Add(f.every)
	}
	return nil
}

package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
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

// probe is a cluster whose Machines are changed.
type probe struct {
	cluster  int
	machines []string
	// measured: it is known when changes arrive.
	measured bool

	mu      sync.Mutex
	changes int
	// pending are the changes that have not arrived, by their number.
	pending map[int]time.Time
	took    []time.Duration
}

// begin notes that the next change begins, and returns its number.
func (p *probe) begin(now time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changes++
	if p.measured {
		p.pending[p.changes] = now
	}
	return p.changes
}

// arrived notes that a Node shows a change. Those before it that it replaced have arrived too.
func (p *probe) arrived(change int, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for number, began := range p.pending {
		if number <= change {
			p.took = append(p.took, now.Sub(began))
			delete(p.pending, number)
		}
	}
}

// left is how many changes have not arrived.
func (p *probe) left() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pending)
}

// harvest returns how long the changes took since the last harvest.
func (p *probe) harvest() []time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	took := p.took
	p.took = nil
	return took
}

// probes of all clusters. The Nodes of those that are to stay well are watched.
func (f *fleet) probes(ctx context.Context) ([]*probe, error) {
	var out []*probe
	for n := range f.clusters {
		machines, err := f.machines(ctx, n)
		if err != nil {
			return nil, err
		}
		p := &probe{cluster: n, machines: machines, measured: !f.isSick(n), pending: map[int]time.Time{}}
		if p.measured {
			if err := f.watch(ctx, p); err != nil {
				return nil, fmt.Errorf("watch the Nodes of cluster %s: %w", template.Cluster(n), err)
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// watch notes the changes that arrive on the Node of a cluster, until ctx ends.
func (f *fleet) watch(ctx context.Context, p *probe) error {
	config, err := follow.Workload(ctx, f.pair.Config, types.NamespacedName{Namespace: f.template.Namespace, Name: template.Cluster(p.cluster)})
	if err != nil {
		return err
	}
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(c, follow.Nodes(), "", 0, cache.Indexers{}, nil).Informer()
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, node any) {
		change, err := strconv.Atoi(node.(*unstructured.Unstructured).GetLabels()[label])
		if err == nil {
			p.arrived(change, time.Now())
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
func (f *fleet) load(ctx context.Context, probes []*probe) ([]time.Duration, error) {
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
	var took []time.Duration
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

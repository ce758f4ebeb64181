package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/bench/follow"
	"github.com/slipwayhq/slipway/test/bench/pair"
	"github.com/slipwayhq/slipway/test/bench/settle"
	"github.com/slipwayhq/slipway/test/bench/template"
)

const (
	// comeUpWithin only ends a run that hangs.
	comeUpWithin = 10 * time.Minute
	// atOnce is how many clusters are created at the same time.
	atOnce = 8
)

// fleet is an installation with its clusters: those with the lowest numbers become sick.
type fleet struct {
	options
	template template.Template
	pair     *pair.Pair
	client   client.Client
}

func (f *fleet) say(format string, args ...any) {
	_, _ = fmt.Fprintf(os.Stderr, format+"\n", args...)
}

func (f *fleet) isSick(n int) bool { return n < f.sick }

// workersOf is how many workers the nth cluster has.
func (f *fleet) workersOf(n int) int {
	if f.isSick(n) {
		return f.workers
	}
	return 1
}

// comeUp makes all clusters and waits until their Machines are Running and nothing is written any more.
func (f *fleet) comeUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, comeUpWithin)
	defer cancel()
	want := 0
	group, creating := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for n := range f.clusters {
		want += f.workersOf(n)
		group.Go(func() error { return f.create(creating, n) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	machines := follow.Objects{Config: f.pair.Config, Resource: follow.Core("machines"), Namespace: f.template.Namespace}
	running := 0
	err := machines.Until(ctx, func(all []*unstructured.Unstructured) bool {
		running = 0
		for _, m := range all {
			if phase, _, _ := unstructured.NestedString(m.Object, "status", "phase"); phase == "Running" {
				running++
			}
		}
		return running == want
	})
	if err != nil {
		return fmt.Errorf("%d of %d Machines are Running: %w", running, want, err)
	}
	_, _, err = settle.Wait(ctx, f.pair.Config, settle.Quiet, comeUpWithin)
	return err
}

// create creates the objects of a cluster in order.
func (f *fleet) create(ctx context.Context, n int) error {
	objects, err := f.template.Render(n)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if o.GetKind() == "MachineDeployment" {
			if err := unstructured.SetNestedField(o.Object, int64(f.workersOf(n)), "spec", "replicas"); err != nil {
				return err
			}
		}
	}
	return template.Create(ctx, f.client, objects)
}

// machines names the Machines of the nth cluster.
func (f *fleet) machines(ctx context.Context, n int) ([]string, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(follow.Kind("MachineList"))
	err := f.client.List(ctx, list, client.InNamespace(f.template.Namespace),
		client.MatchingLabels{"cluster.x-k8s.io/cluster-name": template.Cluster(n)})
	if err != nil {
		return nil, err
	}
	var out []string
	for _, m := range list.Items {
		out = append(out, m.GetName())
	}
	if len(out) != f.workersOf(n) {
		return nil, fmt.Errorf("cluster %s has %d Machines, want %d", template.Cluster(n), len(out), f.workersOf(n))
	}
	return out, nil
}

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/bench/follow"
	"github.com/slipwayhq/slipway/test/bench/template"
)

// action does something to a cluster. That an object is not there (yet, or any more) is no failure.
type action func(ctx context.Context, cluster int) error

// choose throws the dice. The weights say how often of a hundred.
func (s *soak) choose() (string, action) {
	all := []struct {
		weight int
		name   string
		act    action
	}{
		{35, "scale", s.scale},
		{15, "roll out", s.rollOut},
		{15, "delete a Machine", s.deleteMachine},
		{20, "make a node fail", s.failNode},
		{10, "make an API fail", s.failAPI},
		{5, "delete and create", s.recreate},
	}
	n := s.dice.IntN(100)
	for _, a := range all {
		if n -= a.weight; n < 0 {
			return a.name, a.act
		}
	}
	panic("the weights do not add up to 100")
}

func (s *soak) patch(ctx context.Context, o client.Object, format string, args ...any) error {
	return s.client.Patch(ctx, o, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, format, args...)))
}

func (s *soak) create(ctx context.Context, cluster int) error {
	objects, err := s.template.Render(cluster)
	if err != nil {
		return err
	}
	if err := patiently(objects); err != nil {
		return err
	}
	return template.Create(ctx, s.client, objects)
}

// patiently makes Machines wait for their Nodes to be deleted for as long as it takes. Otherwise one that is deleted while
// the workload cluster does not answer leaves its Node behind after 10 s (MD-15), and a lost Node could not be told from it.
func patiently(objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		if o.GroupVersionKind() != follow.Kind("MachineDeployment") {
			continue
		}
		err := unstructured.SetNestedField(o.Object, int64(0), "spec", "template", "spec", "deletion", "nodeDeletionTimeoutSeconds")
		if err != nil {
			return fmt.Errorf("MachineDeployment %s: %w", o.GetName(), err)
		}
	}
	return nil
}

func (s *soak) deployment(cluster int) client.Object {
	return s.template.Object(follow.Kind("MachineDeployment"), s.template.Deployment(cluster))
}

func (s *soak) scale(ctx context.Context, cluster int) error {
	n := 1 + s.dice.IntN(mostWorkers)
	return s.patch(ctx, s.deployment(cluster), `{"spec":{"replicas":%d}}`, n)
}

func (s *soak) rollOut(ctx context.Context, cluster int) error {
	now := time.Now().UTC().Format(time.RFC3339)
	return s.patch(ctx, s.deployment(cluster), `{"spec":{"rollout":{"after":%q}}}`, now)
}

func (s *soak) deleteMachine(ctx context.Context, cluster int) error {
	m, err := s.anyOf(ctx, follow.Kind("Machine"), cluster)
	if m == nil {
		return err
	}
	return s.client.Delete(ctx, m)
}

// recreate deletes a cluster, waits until it is gone and creates it again.
func (s *soak) recreate(ctx context.Context, cluster int) error {
	name := template.Cluster(cluster)
	if err := s.client.Delete(ctx, s.template.Object(follow.Kind("Cluster"), name)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, healWithin)
	defer cancel()
	err := s.of("clusters").Until(ctx, func(all []*unstructured.Unstructured) bool {
		for _, c := range all {
			if c.GetName() == name {
				return false
			}
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("deletion of %s: %w", name, err)
	}
	// what the Cluster does not own is left by design
	objects, err := s.template.Render(cluster)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := s.client.Delete(ctx, o); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return s.create(ctx, cluster)
}

// anyOf returns one of the objects of a cluster, nil if there is none.
func (s *soak) anyOf(ctx context.Context, gvk schema.GroupVersionKind, cluster int) (*unstructured.Unstructured, error) {
	all, err := s.list(ctx, gvk, client.MatchingLabels{"cluster.x-k8s.io/cluster-name": template.Cluster(cluster)})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[s.dice.IntN(len(all))], nil
}

func (s *soak) list(ctx context.Context, gvk schema.GroupVersionKind, o ...client.ListOption) ([]unstructured.Unstructured, error) {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := s.client.List(ctx, l, append(o, client.InNamespace(s.template.Namespace))...)
	return l.Items, err
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
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
		{30, "scale", s.scale},
		{5, "scale the control plane", s.scaleControlPlane},
		{12, "roll out", s.rollOut},
		{3, "roll out the control plane", s.rollOutControlPlane},
		{13, "delete a Machine", s.deleteMachine},
		{18, "make a node fail", s.failNode},
		{10, "make an API fail", s.failAPI},
		{5, "delete and create", s.recreate},
		{4, "move away and back", s.away},
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

// inTopology replaces or adds a field of spec.topology of a Cluster.
func (s *soak) inTopology(ctx context.Context, cluster int, path string, value any) error {
	op := []map[string]any{{"op": "add", "path": "/spec/topology/" + path, "value": value}}
	data, err := json.Marshal(op)
	if err != nil {
		return err
	}
	return s.client.Patch(ctx, s.template.Object(follow.Kind("Cluster"), template.Cluster(cluster)), client.RawPatch(types.JSONPatchType, data))
}

const firstWorkers = "workers/machineDeployments/0/"

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
		var err error
		switch o.GroupVersionKind() {
		case follow.Kind("MachineDeployment"):
			err = unstructured.SetNestedField(o.Object, int64(0), "spec", "template", "spec", "deletion", "nodeDeletionTimeoutSeconds")
		case follow.Kind("Cluster"):
			err = patientTopology(o)
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// patientTopology is patiently for what a topology asks for.
func patientTopology(cluster *unstructured.Unstructured) error {
	workers, ofClass, err := unstructured.NestedSlice(cluster.Object, "spec", "topology", "workers", "machineDeployments")
	if err != nil || !ofClass {
		return err
	}
	for _, w := range workers {
		if d, ok := w.(map[string]any); ok {
			d["deletion"] = map[string]any{"nodeDeletionTimeoutSeconds": int64(0)}
		}
	}
	if err := unstructured.SetNestedSlice(cluster.Object, workers, "spec", "topology", "workers", "machineDeployments"); err != nil {
		return err
	}
	return unstructured.SetNestedField(cluster.Object, int64(0), "spec", "topology", "controlPlane", "deletion", "nodeDeletionTimeoutSeconds")
}

func (s *soak) deployment(cluster int) client.Object {
	return s.template.Object(follow.Kind("MachineDeployment"), s.template.Deployment(cluster))
}

func (s *soak) scale(ctx context.Context, cluster int) error {
	n := 1 + s.dice.IntN(mostWorkers)
	if s.template.OfClass {
		return s.inTopology(ctx, cluster, firstWorkers+"replicas", n)
	}
	return s.patch(ctx, s.deployment(cluster), `{"spec":{"replicas":%d}}`, n)
}

// scaleControlPlane makes it one Machine or three, where it is made of Machines.
func (s *soak) scaleControlPlane(ctx context.Context, cluster int) error {
	n := 1 + 2*s.dice.IntN(2)
	if !s.template.OnMachines {
		return nil
	}
	return s.inTopology(ctx, cluster, "controlPlane/replicas", n)
}

func (s *soak) rollOutControlPlane(ctx context.Context, cluster int) error {
	if !s.template.OnMachines {
		return nil
	}
	return s.inTopology(ctx, cluster, "controlPlane/rollout", map[string]any{"after": now()})
}

func now() string { return time.Now().UTC().Format(time.RFC3339) }

func (s *soak) rollOut(ctx context.Context, cluster int) error {
	if s.template.OfClass {
		return s.inTopology(ctx, cluster, firstWorkers+"rollout", map[string]any{"after": now()})
	}
	return s.patch(ctx, s.deployment(cluster), `{"spec":{"rollout":{"after":%q}}}`, now())
}

// deleteMachine deletes a worker: without its only Machine a control plane is lost.
func (s *soak) deleteMachine(ctx context.Context, cluster int) error {
	m, err := s.anyOf(ctx, follow.Kind("Machine"), cluster, false)
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

// anyOf returns one of the objects of a cluster, of its control plane or not; nil if there is none.
func (s *soak) anyOf(ctx context.Context, gvk schema.GroupVersionKind, cluster int, controlPlane bool) (*unstructured.Unstructured, error) {
	all, err := s.list(ctx, gvk, client.MatchingLabels{clusterv1.ClusterNameLabel: template.Cluster(cluster)})
	all = slices.DeleteFunc(all, func(o unstructured.Unstructured) bool {
		_, is := o.GetLabels()[clusterv1.MachineControlPlaneLabel]
		return is != controlPlane
	})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[s.dice.IntN(len(all))], nil
}

func (s *soak) list(ctx context.Context, gvk schema.GroupVersionKind, o ...client.ListOption) ([]unstructured.Unstructured, error) {
	return listOf(ctx, s.client, gvk, append(o, client.InNamespace(s.template.Namespace))...)
}

func listOf(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, o ...client.ListOption) ([]unstructured.Unstructured, error) {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := c.List(ctx, l, o...)
	return l.Items, err
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/bench/follow"
	"github.com/slipwayhq/slipway/test/bench/settle"
)

// change is one change of the class that all clusters use.
type change struct {
	Seconds    float64 `json:"seconds"` // until all Machines have it
	Replaced   int     `json:"machines_replaced"`
	Writes     float64 `json:"api_writes_per_cluster"` // leases apart
	ManagerCPU float64 `json:"manager_cpu_seconds_per_cluster"`
	Stolen     float64 `json:"stolen_percent"`
}

// changes are what the class of a fleet is changed by.
type changes struct {
	Metadata change `json:"metadata"`
	Template change `json:"template"`
}

// changedLabel is what a change of metadata adds to all Machines.
const changedLabel = "bench.slipway.dev/changed"

// operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// changeClass changes the class of the fleet: a label of its workers, which goes to the Machines in place, and then the template of
// their infrastructure, for which each Machine is replaced.
func (s *stage) changeClass(ctx context.Context) error {
	if !s.template.OfClass || !s.changes {
		return nil
	}
	class, err := s.class(ctx)
	if err != nil {
		return err
	}
	const workers = "/spec/workers/machineDeployments/0"
	s.say("changing a label of the class …")
	metadata, err := s.change(ctx, class, operation{"add", workers + "/metadata", map[string]any{"labels": map[string]any{changedLabel: "true"}}},
		func(m *unstructured.Unstructured, _ bool) bool { return m.GetLabels()[changedLabel] != "" })
	if err != nil {
		return fmt.Errorf("change a label of the class: %w", err)
	}
	name, err := s.anotherTemplate(ctx, class)
	if err != nil {
		return err
	}
	s.say("changing the template of the workers of the class …")
	replaced, err := s.change(ctx, class, operation{"replace", workers + "/infrastructure/templateRef/name", name},
		func(_ *unstructured.Unstructured, existed bool) bool { return !existed })
	if err != nil {
		return fmt.Errorf("change a template of the class: %w", err)
	}
	s.found.Changes = &changes{Metadata: metadata, Template: replaced}
	return nil
}

// class is the one ClusterClass.
func (s *stage) class(ctx context.Context) (*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(follow.Kind("ClusterClassList"))
	if err := s.client.List(ctx, list, client.InNamespace(s.template.Namespace)); err != nil {
		return nil, err
	}
	if len(list.Items) != 1 {
		return nil, fmt.Errorf("%d ClusterClasses in namespace %s, want one", len(list.Items), s.template.Namespace)
	}
	return &list.Items[0], nil
}

// anotherTemplate creates the template of the first workers' infrastructure once more, with another spec, and returns its name.
func (s *stage) anotherTemplate(ctx context.Context, class *unstructured.Unstructured) (string, error) {
	workers, _, err := unstructured.NestedSlice(class.Object, "spec", "workers", "machineDeployments")
	if err != nil || len(workers) == 0 {
		return "", fmt.Errorf("the class has no MachineDeployments: %w", err)
	}
	ref, _, err := unstructured.NestedStringMap(workers[0].(map[string]any), "infrastructure", "templateRef")
	if err != nil {
		return "", err
	}
	old := &unstructured.Unstructured{}
	old.SetAPIVersion(ref["apiVersion"])
	old.SetKind(ref["kind"])
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: s.template.Namespace, Name: ref["name"]}, old); err != nil {
		return "", err
	}
	other := &unstructured.Unstructured{Object: map[string]any{"spec": old.Object["spec"]}}
	other.SetGroupVersionKind(old.GroupVersionKind())
	other.SetNamespace(old.GetNamespace())
	other.SetName(old.GetName() + "-changed")
	if err := unstructured.SetNestedField(other.Object, "1ms", "spec", "template", "spec", "backend", "simulated", "startupDelay"); err != nil {
		return "", err
	}
	return other.GetName(), s.client.Create(ctx, other)
}

// change patches the class and waits until all Machines that run are as wanted, and as many as before; wanted is told whether the Machine
// existed before the change.
func (s *stage) change(ctx context.Context, class client.Object, op operation, wanted func(m *unstructured.Unstructured, existed bool) bool) (change, error) {
	if err := s.host.Quiet(ctx, moment); err != nil {
		return change{}, err
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	before := map[types.UID]bool{}
	err := s.of("machines").Until(ctx, func(all []*unstructured.Unstructured) bool {
		for _, m := range all {
			if isWorker(m) {
				before[m.GetUID()] = true
			}
		}
		return true
	})
	if err != nil {
		return change{}, err
	}
	patch, err := json.Marshal([]operation{op})
	if err != nil {
		return change{}, err
	}
	from, err := s.begin(ctx)
	if err != nil {
		return change{}, err
	}
	if err := s.client.Patch(ctx, class, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return change{}, err
	}
	var c change
	err = s.of("machines").Until(ctx, func(all []*unstructured.Unstructured) bool {
		done, existed, workers := 0, 0, 0
		for _, m := range all {
			if !isWorker(m) { // the class changes for workers
				continue
			}
			workers++
			phase, _, _ := unstructured.NestedString(m.Object, "status", "phase")
			if before[m.GetUID()] {
				existed++
			}
			if phase == "Running" && wanted(m, before[m.GetUID()]) {
				done++
			}
		}
		c.Replaced = len(before) - existed
		return done == len(before) && workers == len(before)
	})
	if err != nil {
		return change{}, err
	}
	c.Seconds = time.Since(from.at).Seconds()
	if _, err := s.settle(ctx); err != nil {
		return change{}, err
	}
	to, err := s.mark(ctx)
	if err != nil {
		return change{}, err
	}
	c.Writes, c.ManagerCPU, c.Stolen = s.cost(from, to)
	return c, nil
}

// cost is the writes of each cluster between two marks, the processor seconds that the manager took for each, and the percentage of the
// machine that others had.
func (s *stage) cost(from, to mark) (writes, managerCPU, stolen float64) {
	return float64(to.asked.Since(from.asked).Total(settle.IsWrite)) / float64(s.size),
		(to.usage.Manager.CPU - from.usage.Manager.CPU).Seconds() / float64(s.size),
		100 * to.cpu.StolenSince(from.cpu)
}

func isWorker(m *unstructured.Unstructured) bool {
	_, controlPlane := m.GetLabels()["cluster.x-k8s.io/control-plane"]
	return !controlPlane
}

package fleet

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/bench/harness"
)

// changedLabel is added to all Machines by a change of the class.
const changedLabel = "bench.slipway.dev/changed"

// changeClass changes a label of the class, which Machines receive in place, and then the infrastructure template, for which
// all workers are replaced.
func (r *fleetRun) changeClass(ctx context.Context) error {
	if !r.OfClass || !r.changes {
		return nil
	}
	classes, err := harness.List(ctx, r.Client, clusterv1.GroupVersion.WithKind("ClusterClass"), client.InNamespace(r.Namespace))
	if err != nil {
		return err
	}
	if len(classes) != 1 {
		return fmt.Errorf("namespace %s has %d ClusterClasses instead of one", r.Namespace, len(classes))
	}
	const workers = "/spec/workers/machineDeployments/0"
	class := &classes[0]
	r.result.Changes = &changes{}
	r.logf("changing a label of the class …")
	r.result.Changes.Metadata, err = r.changeMachines(ctx, isWorker, func() error {
		return harness.SetField(ctx, r.Client, class, workers+"/metadata", map[string]any{"labels": map[string]any{changedLabel: "true"}})
	}, func(m *unstructured.Unstructured, _ bool) bool { return m.GetLabels()[changedLabel] != "" })
	if err != nil {
		return fmt.Errorf("change a label of the class: %w", err)
	}
	name, err := r.createOtherTemplate(ctx, class)
	if err != nil {
		return fmt.Errorf("create another infrastructure template: %w", err)
	}
	r.logf("changing the template of the workers of the class …")
	r.result.Changes.Template, err = r.changeMachines(ctx, isWorker, func() error {
		return harness.SetField(ctx, r.Client, class, workers+"/infrastructure/templateRef/name", name)
	}, func(_ *unstructured.Unstructured, existed bool) bool { return !existed })
	if err != nil {
		return fmt.Errorf("change a template of the class: %w", err)
	}
	return nil
}

// createOtherTemplate copies the infrastructure template of the first workers with another spec and returns its name.
func (r *fleetRun) createOtherTemplate(ctx context.Context, class *unstructured.Unstructured) (string, error) {
	workers, _, err := unstructured.NestedSlice(class.Object, "spec", "workers", "machineDeployments")
	if err != nil || len(workers) == 0 {
		return "", fmt.Errorf("the class has no MachineDeployments: %w", err)
	}
	ref, _, err := unstructured.NestedStringMap(workers[0].(map[string]any), "infrastructure", "templateRef")
	if err != nil {
		return "", err
	}
	original := &unstructured.Unstructured{Object: map[string]any{"apiVersion": ref["apiVersion"], "kind": ref["kind"]}}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: ref["name"]}, original); err != nil {
		return "", err
	}
	other := r.Object(original.GroupVersionKind(), original.GetName()+"-changed")
	other.Object["spec"] = original.Object["spec"]
	if err := unstructured.SetNestedField(other.Object, "1ms", "spec", "template", "spec", "backend", "simulated", "startupDelay"); err != nil {
		return "", err
	}
	return other.GetName(), r.Client.Create(ctx, other)
}

// changeMachines makes a change and waits until the concerned Machines are Running with it, as many as before. isChanged gets
// a Machine and whether it existed before.
func (r *fleetRun) changeMachines(
	ctx context.Context, concerned func(*unstructured.Unstructured) bool, makeChange func() error, isChanged func(m *unstructured.Unstructured, existed bool) bool,
) (change, error) {
	var c change
	if err := r.host.WaitQuiet(ctx, quietPeriod); err != nil {
		return c, err
	}
	machines, err := harness.List(ctx, r.Client, clusterv1.GroupVersion.WithKind("Machine"), client.InNamespace(r.Namespace))
	if err != nil {
		return c, err
	}
	before := map[types.UID]bool{}
	for i := range machines {
		if concerned(&machines[i]) {
			before[machines[i].GetUID()] = true
		}
	}
	from, to, _, err := r.observe(ctx, func() error {
		start := time.Now()
		if err := makeChange(); err != nil {
			return err
		}
		err := r.Objects("machines").Until(ctx, func(all []*unstructured.Unstructured) bool {
			changed, existed, total := 0, 0, 0
			for _, m := range all {
				if !concerned(m) {
					continue
				}
				total++
				if before[m.GetUID()] {
					existed++
				}
				if harness.IsRunning(m) == "" && isChanged(m, before[m.GetUID()]) {
					changed++
				}
			}
			c.Replaced = len(before) - existed
			return changed == len(before) && total == len(before)
		})
		c.Seconds = time.Since(start).Seconds()
		return err
	})
	cost := newClusterCost(from, to, r.size)
	c.Writes, c.ManagerCPU, c.Stolen = cost.Writes, cost.ManagerCPU/float64(r.size), cost.Stolen
	return c, err
}

func isWorker(m *unstructured.Unstructured) bool {
	_, controlPlane := m.GetLabels()[clusterv1.MachineControlPlaneLabel]
	return !controlPlane
}

// upgrade sets the version of all clusters and waits until all Machines are replaced.
func (r *fleetRun) upgrade(ctx context.Context) error {
	if r.version == "" {
		return nil
	}
	r.logf("upgrading all to %s …", r.version)
	seen := &etcdStates{seen: map[string]bool{}}
	planes := harness.Objects{Config: r.Config, Resource: harness.KubeadmControlPlanes(), Namespace: r.Namespace}
	_, stop, err := planes.Watch(ctx, seen.record)
	if err != nil {
		return err
	}
	defer stop()
	c, err := r.changeMachines(ctx, func(*unstructured.Unstructured) bool { return true }, func() error {
		return harness.InParallel(ctx, r.size, 8, func(ctx context.Context, n int) error {
			return harness.SetField(ctx, r.Client, r.CoreObject("Cluster", harness.ClusterName(n)), "/spec/topology/version", r.version)
		})
	}, func(m *unstructured.Unstructured, existed bool) bool {
		version, _, _ := unstructured.NestedString(m.Object, "spec", "version")
		return version == r.version && !existed
	})
	if err != nil {
		return fmt.Errorf("upgrade the clusters: %w", err)
	}
	stop()
	r.result.Upgrade = &upgrade{change: c, States: len(seen.seen), BelowQuorum: seen.belowQuorum}
	return nil
}

// etcdStates are the messages about etcd that KubeadmControlPlanes reported.
type etcdStates struct {
	mu          sync.Mutex
	seen        map[string]bool
	belowQuorum []string
}

func (s *etcdStates) record(o *unstructured.Unstructured) {
	if o == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text, _ := harness.Condition(o, "EtcdClusterHealthy")["message"].(string)
	state := o.GetName() + ": " + text
	if s.seen[state] {
		return
	}
	s.seen[state] = true
	if isBelowQuorum(text) {
		s.belowQuorum = append(s.belowQuorum, state)
	}
}

// isBelowQuorum reads the message of the condition EtcdClusterHealthy.
func isBelowQuorum(text string) bool {
	members := regexp.MustCompile(`(\d+) of \d+ etcd members healthy, (\d+) needed`).FindStringSubmatch(text)
	if members == nil {
		return strings.Contains(text, "lost its quorum")
	}
	healthy, _ := strconv.Atoi(members[1])
	needed, _ := strconv.Atoi(members[2])
	return healthy < needed
}

package fleet

import (
	"context"
	"regexp"
	"strconv"
	"strings"
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
func (r *fleetRun) changeClass(ctx context.Context) {
	if !r.OfClass || !r.changes {
		return
	}
	classes := harness.List(ctx, r.Client, clusterv1.GroupVersion.WithKind("ClusterClass"), client.InNamespace(r.Namespace))
	if len(classes) != 1 {
		harness.Failf("namespace %s has %d ClusterClasses instead of one", r.Namespace, len(classes))
	}
	const workers = "/spec/workers/machineDeployments/0"
	class := &classes[0]
	r.result.Changes = &changes{}
	r.logf("changing a label of the class …")
	r.result.Changes.Metadata = r.changeMachines(ctx, isWorker, func() {
		harness.SetField(ctx, r.Client, class, workers+"/metadata", map[string]any{"labels": map[string]any{changedLabel: "true"}})
	}, func(m *unstructured.Unstructured, _ bool) bool { return m.GetLabels()[changedLabel] != "" })
	name := r.createOtherTemplate(ctx, class)
	r.logf("changing the template of the workers of the class …")
	r.result.Changes.Template = r.changeMachines(ctx, isWorker, func() {
		harness.SetField(ctx, r.Client, class, workers+"/infrastructure/templateRef/name", name)
	}, func(_ *unstructured.Unstructured, existed bool) bool { return !existed })
}

// createOtherTemplate copies the infrastructure template of the first workers with another spec and returns its name.
func (r *fleetRun) createOtherTemplate(ctx context.Context, class *unstructured.Unstructured) string {
	workers, _, err := unstructured.NestedSlice(class.Object, "spec", "workers", "machineDeployments")
	harness.Check(err)
	ref, _, err := unstructured.NestedStringMap(workers[0].(map[string]any), "infrastructure", "templateRef")
	harness.Check(err)
	original := &unstructured.Unstructured{Object: map[string]any{"apiVersion": ref["apiVersion"], "kind": ref["kind"]}}
	harness.Check(r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: ref["name"]}, original))
	other := r.Object(original.GroupVersionKind(), original.GetName()+"-changed")
	other.Object["spec"] = original.Object["spec"]
	harness.Check(unstructured.SetNestedField(other.Object, "1ms", "spec", "template", "spec", "backend", "simulated", "startupDelay"))
	harness.Checkf(r.Client.Create(ctx, other), "create another infrastructure template")
	return other.GetName()
}

// changeMachines makes a change and waits until the concerned Machines are Running with it, as many as before. isChanged gets
// a Machine and whether it existed before.
func (r *fleetRun) changeMachines(
	ctx context.Context, concerned func(*unstructured.Unstructured) bool, makeChange func(), isChanged func(m *unstructured.Unstructured, existed bool) bool,
) (c change) {
	r.host.WaitQuiet(ctx, quietPeriod)
	machines := harness.List(ctx, r.Client, clusterv1.GroupVersion.WithKind("Machine"), client.InNamespace(r.Namespace))
	before := map[types.UID]bool{}
	for i := range machines {
		if concerned(&machines[i]) {
			before[machines[i].GetUID()] = true
		}
	}
	from, to, _ := r.observe(ctx, func() {
		start := time.Now()
		makeChange()
		r.Objects("machines").Until(ctx, func(all []*unstructured.Unstructured) bool {
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
	})
	cost := newClusterCost(from, to, r.size)
	c.Writes, c.ManagerCPU, c.Stolen = cost.Writes, cost.ManagerCPU/float64(r.size), cost.Stolen
	return c
}

func isWorker(m *unstructured.Unstructured) bool {
	_, controlPlane := m.GetLabels()[clusterv1.MachineControlPlaneLabel]
	return !controlPlane
}

// upgrade sets the version of all clusters and waits until all Machines are replaced.
func (r *fleetRun) upgrade(ctx context.Context) {
	if r.version == "" {
		return
	}
	r.logf("upgrading all to %s …", r.version)
	seen := &etcdStates{seen: map[string]bool{}}
	_, stop := r.KubeadmControlPlanes().Watch(ctx, seen.record)
	defer stop()
	c := r.changeMachines(ctx, func(*unstructured.Unstructured) bool { return true }, func() {
		harness.InParallel(ctx, r.size, 8, func(ctx context.Context, n int) {
			harness.SetField(ctx, r.Client, r.CoreObject("Cluster", harness.ClusterName(n)), "/spec/topology/version", r.version)
		})
	}, func(m *unstructured.Unstructured, existed bool) bool {
		version, _, _ := unstructured.NestedString(m.Object, "spec", "version")
		return version == r.version && !existed
	})
	stop()
	r.result.Upgrade = &upgrade{change: c, States: len(seen.seen), BelowQuorum: seen.belowQuorum}
}

// etcdStates are the messages about etcd that KubeadmControlPlanes reported.
type etcdStates struct {
	seen        map[string]bool
	belowQuorum []string
}

func (s *etcdStates) record(o *unstructured.Unstructured) {
	if o == nil {
		return
	}
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

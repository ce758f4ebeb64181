package soak

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/test/bench/harness"
)

// action changes or disturbs a cluster. The weights of all actions add up to 100. NotFound errors are ignored.
type action struct {
	weight int
	name   string
	act    func(ctx context.Context, cluster int)
}

func (s *soak) actions() []action {
	return []action{
		{30, "scale", s.scale},
		{5, "scale the control plane", s.scaleControlPlane},
		{12, "roll out", s.rollOut},
		{3, "roll out the control plane", s.rollOutControlPlane},
		{13, "delete a Machine", s.deleteMachine},
		{18, "make a node fail", s.failNode},
		{10, "make an API fail", s.failAPI},
		{5, "delete and create", s.recreate},
		{4, "move away and back", s.moveAndReturn},
	}
}

func (s *soak) choose() action {
	n := s.random.IntN(100)
	all := s.actions()
	for _, a := range all {
		if n -= a.weight; n < 0 {
			return a
		}
	}
	return all[0]
}

// waitForNodeDeletion removes the timeout for the deletion of Nodes. With the default of 10 s, a Machine that is deleted while
// the workload API is down correctly leaves its Node behind, which could not be distinguished from a lost Node.
func waitForNodeDeletion(objects []*unstructured.Unstructured) {
	const timeout = "nodeDeletionTimeoutSeconds"
	for _, o := range objects {
		switch o.GroupVersionKind() {
		case clusterv1.GroupVersion.WithKind("MachineDeployment"):
			harness.Check(unstructured.SetNestedField(o.Object, int64(0), "spec", "template", "spec", "deletion", timeout))
		case clusterv1.GroupVersion.WithKind("Cluster"):
			workers, ofClass, err := unstructured.NestedSlice(o.Object, "spec", "topology", "workers", "machineDeployments")
			harness.Check(err)
			if !ofClass {
				continue
			}
			for _, w := range workers {
				w.(map[string]any)["deletion"] = map[string]any{timeout: int64(0)}
			}
			harness.Check(unstructured.SetNestedSlice(o.Object, workers, "spec", "topology", "workers", "machineDeployments"))
			harness.Check(unstructured.SetNestedField(o.Object, int64(0), "spec", "topology", "controlPlane", "deletion", timeout))
		}
	}
}

// setWorkers sets a field of the MachineDeployment, in the topology if there is one.
func (s *soak) setWorkers(ctx context.Context, cluster int, field string, value any) {
	if s.OfClass {
		s.setTopology(ctx, cluster, "workers/machineDeployments/0/"+field, value)
		return
	}
	harness.SetField(ctx, s.Client, s.CoreObject("MachineDeployment", s.WorkersName(cluster)), "/spec/"+field, value)
}

func (s *soak) setTopology(ctx context.Context, cluster int, field string, value any) {
	harness.SetField(ctx, s.Client, s.CoreObject("Cluster", harness.ClusterName(cluster)), "/spec/topology/"+field, value)
}

func (s *soak) scale(ctx context.Context, cluster int) {
	s.setWorkers(ctx, cluster, "replicas", 1+s.random.IntN(5))
}

// scaleControlPlane scales to one Machine or three.
func (s *soak) scaleControlPlane(ctx context.Context, cluster int) {
	if n := 1 + 2*s.random.IntN(2); s.OnMachines {
		s.setTopology(ctx, cluster, "controlPlane/replicas", n)
	}
}

func (s *soak) rollOut(ctx context.Context, cluster int) {
	s.setWorkers(ctx, cluster, "rollout", map[string]any{"after": time.Now().UTC().Format(time.RFC3339)})
}

func (s *soak) rollOutControlPlane(ctx context.Context, cluster int) {
	if s.OnMachines {
		s.setTopology(ctx, cluster, "controlPlane/rollout", map[string]any{"after": time.Now().UTC().Format(time.RFC3339)})
	}
}

// deleteMachine deletes a worker. A control plane would be lost without its only Machine.
func (s *soak) deleteMachine(ctx context.Context, cluster int) {
	if m := s.chooseObject(ctx, clusterv1.GroupVersion.WithKind("Machine"), cluster, false); m != nil {
		harness.Check(s.Client.Delete(ctx, m))
	}
}

// recreate deletes a cluster, waits until it is gone and creates it again.
func (s *soak) recreate(ctx context.Context, cluster int) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	name := harness.ClusterName(cluster)
	harness.Check(s.Client.Delete(ctx, s.CoreObject("Cluster", name)))
	s.Objects("clusters").Until(ctx, func(all []*unstructured.Unstructured) bool {
		return !slices.ContainsFunc(all, func(o *unstructured.Unstructured) bool { return o.GetName() == name })
	})
	own, _ := s.Render(cluster)
	for _, o := range own { // objects without an owner remain by design
		harness.Check(client.IgnoreNotFound(s.Client.Delete(ctx, o)))
	}
	s.Create(ctx, cluster, waitForNodeDeletion)
}

// chooseObject returns a random object of a cluster, of its control plane or not; nil if there is none.
func (s *soak) chooseObject(ctx context.Context, kind schema.GroupVersionKind, cluster int, controlPlane bool) *unstructured.Unstructured {
	ofCluster := client.MatchingLabels{clusterv1.ClusterNameLabel: harness.ClusterName(cluster)}
	all := harness.List(ctx, s.Client, kind, client.InNamespace(s.Namespace), ofCluster)
	all = slices.DeleteFunc(all, func(o unstructured.Unstructured) bool {
		_, isControlPlane := o.GetLabels()[clusterv1.MachineControlPlaneLabel]
		return isControlPlane != controlPlane
	})
	if len(all) == 0 {
		return nil
	}
	return &all[s.random.IntN(len(all))]
}

// faults are annotations that simulate a fault, with the possible values.
type faults []struct {
	annotation string
	values     []string
}

func nodeFaults() faults {
	return faults{{infrav1.NeverBootsAnnotation, []string{"true"}}, {infrav1.NotReadyAfterAnnotation, []string{"0s", "5s"}}}
}

func apiFaults() faults {
	return faults{{hostedv1.APIDownAnnotation, []string{"5s", "30s", "always"}}, {hostedv1.APISlowAnnotation, []string{"100ms", "2s"}}}
}

func controlPlaneFaults() faults {
	return faults{{infrav1.ControlPlaneFaultsAnnotation, []string{
		"etcd-down", "etcd-delay=1s", "etcd-alarm=NOSPACE", "pod-down=kube-scheduler", "pod-down=kube-apiserver", "etcd-learner,etcd-delay=200ms",
	}}}
}

func (s *soak) failNode(ctx context.Context, cluster int) {
	s.fail(ctx, s.chooseObject(ctx, infrav1.GroupVersion.WithKind("LocalMachine"), cluster, false), nodeFaults())
}

// failAPI simulates a fault of the hosted control plane or of a control plane Machine.
func (s *soak) failAPI(ctx context.Context, cluster int) {
	if s.OnMachines {
		s.fail(ctx, s.chooseObject(ctx, infrav1.GroupVersion.WithKind("LocalMachine"), cluster, true), controlPlaneFaults())
		return
	}
	s.fail(ctx, s.chooseObject(ctx, hostedv1.GroupVersion.WithKind("HostedControlPlane"), cluster, false), apiFaults())
}

// fail simulates a fault or reverts all faults of an object; nothing if the object is nil.
func (s *soak) fail(ctx context.Context, o *unstructured.Unstructured, all faults) {
	switch {
	case o == nil:
	case s.random.IntN(2) == 0:
		revert(ctx, s.Client, o, all)
	default:
		f := all[s.random.IntN(len(all))]
		harness.SetMetadata(ctx, s.Client, o, "annotations", map[string]any{f.annotation: f.values[s.random.IntN(len(f.values))]})
	}
}

func revert(ctx context.Context, c client.Client, o *unstructured.Unstructured, all faults) {
	annotations := map[string]any{}
	for _, f := range all {
		if _, ok := o.GetAnnotations()[f.annotation]; ok {
			annotations[f.annotation] = nil
		}
	}
	if len(annotations) > 0 {
		harness.SetMetadata(ctx, c, o, "annotations", annotations)
	}
}

// revertFaults reverts all faults in a management cluster.
func revertFaults(ctx context.Context, c client.Client, namespace string) {
	for kind, all := range map[schema.GroupVersionKind]faults{
		infrav1.GroupVersion.WithKind("LocalMachine"):        append(nodeFaults(), controlPlaneFaults()...),
		hostedv1.GroupVersion.WithKind("HostedControlPlane"): apiFaults(),
	} {
		for _, o := range harness.List(ctx, c, kind, client.InNamespace(namespace)) {
			harness.Check(client.IgnoreNotFound(harness.Try(func() { revert(ctx, c, &o, all) })))
		}
	}
}

// moveAndReturn moves a cluster to the other management cluster and back. A move that is rejected because of a current fault
// has no effect.
func (s *soak) moveAndReturn(ctx context.Context, cluster int) {
	name := harness.ClusterName(cluster)
	if output, err := s.move(ctx, s.env, s.other, name); err != nil {
		o := s.CoreObject("Cluster", name)
		err := harness.Must(client.New(s.other.Config, client.Options{})).Get(ctx, client.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) {
			s.report.Refused++
			return
		}
		harness.Check(err)
		s.logf("the move of %s was interrupted: %s", name, output)
		s.moveWithRetries(ctx, s.env, s.other, name)
	}
	s.report.Moved++
	s.moveWithRetries(ctx, s.other, s.env, name)
}

// moveWithRetries repeats a move until it succeeds. It reverts faults in the source, because they prevent a move.
func (s *soak) moveWithRetries(ctx context.Context, source, target *harness.Environment, name string) {
	c := harness.Must(client.New(source.Config, client.Options{}))
	for start := time.Now(); ; {
		revertFaults(ctx, c, s.Namespace)
		output, err := s.move(ctx, source, target, name)
		if err == nil {
			return
		}
		if time.Since(start) > readyTimeout {
			harness.Failf("move %s: %w: %s", name, err, output)
		}
		harness.Sleep(ctx, time.Second)
	}
}

func (s *soak) move(ctx context.Context, source, target *harness.Environment, name string) (string, error) {
	output, err := exec.CommandContext(ctx, s.Binary, "move", "--kubeconfig", source.Kubeconfig(), "--to-kubeconfig", target.Kubeconfig(),
		"--namespace", s.Namespace, "--cluster", name).CombinedOutput()
	return strings.TrimSpace(string(output)), err
}

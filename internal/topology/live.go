package topology

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/sdk/contract"
)

// Objects returns all existing objects, including templates, in any order. The topology controller looks up its
// [Attempts] for them.
func (l Live) Objects() []client.Object {
	var out []client.Object
	add := func(objects ...contract.Object) {
		for _, o := range objects {
			if o.Unstructured != nil {
				out = append(out, o.Unstructured)
			}
		}
	}
	add(l.InfraCluster, l.ControlPlane, l.ControlPlaneMachines)
	for _, workers := range []map[string]LiveWorker{l.Deployments, l.Pools} {
		for _, w := range workers {
			out = append(out, w.Object)
			add(w.Bootstrap, w.Infrastructure)
		}
	}
	for _, check := range l.HealthChecks {
		out = append(out, check)
	}
	return out
}

// IsOwnedBy reports whether an object belongs to the topology of the Cluster, according to the labels that Cluster API
// defines. The topology controller adopts no object for which it is false.
func IsOwnedBy(cluster *clusterv1.Cluster, o client.Object) bool {
	return o.GetLabels()[clusterv1.ClusterNameLabel] == cluster.Name && IsOwned(o)
}

// IsOwned reports whether an object belongs to any topology. The topology controller ignores objects for which it is
// false.
func IsOwned(o client.Object) bool {
	_, ok := o.GetLabels()[clusterv1.ClusterTopologyOwnedLabel]
	return ok
}

// DeploymentTemplates returns the class templates of the MachineDeployments in spec.topology, by their name there. The
// topology controller assigns existing workers to these names, and reads their objects in the versions of the
// templates.
func (s Snapshot) DeploymentTemplates() map[string]WorkerTemplates {
	return s.workerTemplates(Deployment)
}

// PoolTemplates is [Snapshot.DeploymentTemplates] for MachinePools. The topology controller calls it for the
// MachinePools of a Cluster.
func (s Snapshot) PoolTemplates() map[string]WorkerTemplates { return s.workerTemplates(Pool) }

func (s Snapshot) workerTemplates(role Role) map[string]WorkerTemplates {
	out := map[string]WorkerTemplates{}
	for _, w := range Workers(s.Cluster.Spec.Topology) {
		if w.Role != role {
			continue
		}
		out[w.Key.Worker] = WorkerTemplates{}
		if class := FindWorkerClass(s.Class, role, w.Class); class != nil {
			out[w.Key.Worker] = class.WorkerTemplates
		}
	}
	return out
}

// Replicas returns spec.replicas of an object, and whether it is set. The topology controller uses it to recognize and
// report a change of the scale.
func Replicas(o client.Object) (int64, bool) {
	switch o := o.(type) {
	case *clusterv1.MachineDeployment:
		return int64(ptr.Deref(o.Spec.Replicas, 0)), o.Spec.Replicas != nil
	case *clusterv1.MachinePool:
		return int64(ptr.Deref(o.Spec.Replicas, 0)), o.Spec.Replicas != nil
	case *unstructured.Unstructured:
		n, set, err := unstructured.NestedInt64(o.Object, "spec", "replicas")
		return n, set && err == nil
	}
	return 0, false
}

package lifecycle

import (
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// ControlPlaneOf returns the observed state of a control plane, for the [Input] of the topology controller. It reads
// only fields of Cluster API's control plane contract.
func ControlPlaneOf(v contract.ControlPlaneView) *ControlPlane {
	out := &ControlPlane{Kind: v.GetKind(), Name: v.GetName(), Version: v.SpecVersion.Or("")}
	if running := v.Versions.Or(nil); len(running) > 0 {
		out.Running = running[0].Version
	}
	want, scalable := v.SpecReplicas.Get()
	out.Scaling = scalable && v.Replicas.Or(want) != want
	return out
}

// WorkerOf returns the observed state of a MachineDeployment or MachinePool of the topology, for the [Input] of the
// topology controller; live is nil if it has to be created.
func WorkerOf(kind, name string, metadata clusterv1.ObjectMeta, live client.Object) Worker {
	w := Worker{Kind: kind, Topology: name, Annotations: metadata.Annotations}
	var running []clusterv1.StatusVersion
	switch o := live.(type) {
	case *clusterv1.MachineDeployment:
		w.Version, running, w.RollingOut = o.Spec.Template.Spec.Version, o.Status.Versions, isRollingOut(o)
	case *clusterv1.MachinePool:
		w.Version, running = o.Spec.Template.Spec.Version, o.Status.Versions
	default:
		return w
	}
	w.Exists, w.Name = true, live.GetName()
	w.Upgrading = slices.ContainsFunc(running, func(v clusterv1.StatusVersion) bool { return behind(v.Version, w.Version) })
	return w
}

// isRollingOut reports whether a MachineDeployment is replacing Machines automatically, or may be about to.
func isRollingOut(md *clusterv1.MachineDeployment) bool {
	return md.Spec.Rollout.Strategy.Type != clusterv1.OnDeleteMachineDeploymentStrategyType &&
		(md.Status.ObservedGeneration < md.Generation || condition.Set(md.Status.Conditions).IsTrue(clusterv1.MachineDeploymentRollingOutCondition))
}

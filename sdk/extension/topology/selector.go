package topology

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Selector selects templates by their use. The selectors in this package match like matchResources of inline patches;
// any other function can be used, too.
type Selector func(t Template) bool

// InfrastructureCluster selects the template of the infrastructure cluster.
func InfrastructureCluster() Selector {
	return func(t Template) bool {
		return t.heldBy(clusterv1.ClusterKind) && t.Holder.FieldPath == "spec.infrastructureRef"
	}
}

// ControlPlane selects the templates of the control plane and its machines.
func ControlPlane() Selector {
	return func(t Template) bool {
		if t.heldBy(clusterv1.ClusterKind) {
			return t.Holder.FieldPath == "spec.controlPlaneRef"
		}
		return t.Holder.Kind != "" && !t.heldBy("MachineDeployment") && !t.heldBy("MachinePool")
	}
}

// MachineDeploymentClass selects the templates of MachineDeployments whose class,
// spec.workers.machineDeployments[].class of the ClusterClass, has one of the names. A name may start or end with *.
func MachineDeploymentClass(names ...string) Selector {
	return func(t Template) bool {
		b, err := t.Variables.Builtins()
		return t.heldBy("MachineDeployment") && err == nil && b.MachineDeployment != nil && anyName(names, b.MachineDeployment.Class)
	}
}

// MachinePoolClass is [MachineDeploymentClass] for MachinePools.
func MachinePoolClass(names ...string) Selector {
	return func(t Template) bool {
		b, err := t.Variables.Builtins()
		return t.heldBy("MachinePool") && err == nil && b.MachinePool != nil && anyName(names, b.MachinePool.Class)
	}
}

// heldBy reports whether an object of a core Cluster API kind uses the template.
func (t Template) heldBy(kind string) bool {
	gv, err := schema.ParseGroupVersion(t.Holder.APIVersion)
	return err == nil && gv.Group == clusterv1.GroupVersion.Group && t.Holder.Kind == kind
}

func anyName(names []string, class string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		if end, ok := strings.CutPrefix(name, "*"); ok {
			return strings.HasSuffix(class, end)
		}
		if start, ok := strings.CutSuffix(name, "*"); ok {
			return strings.HasPrefix(class, start)
		}
		return name == class
	})
}

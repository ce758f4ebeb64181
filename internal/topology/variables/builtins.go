package variables

import (
	"cmp"
	"maps"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/topology/lifecycle"
)

// ControlPlane holds the input for the builtin variable of a control plane's templates. Cluster API defines the fields
// of the builtin variable, which templates and extensions read.
type ControlPlane struct {
	Name     string
	Version  string // desired version
	Replicas *int32
	Metadata clusterv1.ObjectMeta
	// InfrastructureTemplate is the name of the template of its Machines; empty if it has none.
	InfrastructureTemplate string
}

// Workers holds the input for the builtin variable of the templates of a MachineDeployment or MachinePool. Package
// topology fills it in for the patches, as it does [ControlPlane].
type Workers struct {
	Name         string
	TopologyName string
	Class        string
	Version      string // desired version
	Replicas     *int32
	Metadata     clusterv1.ObjectMeta
	// Bootstrap and Infrastructure are the names of the referenced objects; empty if they are not known yet.
	Bootstrap      string
	Infrastructure string
}

// ClusterBuiltins returns the part of the builtin variable that is the same for all templates of a Cluster. The
// topology controller computes it whenever it applies the patches of the class. It must not contain progress that
// controllers record on the Cluster, because each change may replace Machines.
func ClusterBuiltins(cluster *clusterv1.Cluster) runtimehooksv1.Builtins {
	topology, network := cluster.Spec.Topology, cluster.Spec.ClusterNetwork
	annotations := maps.Clone(cluster.Annotations)
	delete(annotations, corev1.LastAppliedConfigAnnotation) // a copy of the whole Cluster
	for _, record := range []string{lifecycle.WorkersAnnotation, runtimev1.PendingHooksAnnotation, clusterv1.ClusterTopologyUpgradeStepAnnotation} {
		delete(annotations, record) // progress of the topology, on which no object created from a template may depend
	}
	namespace := cmp.Or(topology.ClassRef.Namespace, cluster.Namespace)
	out := &runtimehooksv1.ClusterBuiltins{
		Name: cluster.Name, Namespace: cluster.Namespace, UID: cluster.UID,
		Metadata: metadata(clusterv1.ObjectMeta{Labels: cluster.Labels, Annotations: annotations}),
		Topology: &runtimehooksv1.ClusterTopologyBuiltins{
			Version:  topology.Version,
			ClassRef: runtimehooksv1.ClusterTopologyClusterClassRefBuiltins{Name: topology.ClassRef.Name, Namespace: namespace},
			Class:    topology.ClassRef.Name, ClassNamespace: namespace,
		},
	}
	services, pods := network.Services.CIDRBlocks, network.Pods.CIDRBlocks
	if network.ServiceDomain != "" || len(services) > 0 || len(pods) > 0 {
		out.Network = &runtimehooksv1.ClusterNetworkBuiltins{Services: services, Pods: pods}
		if network.ServiceDomain != "" {
			out.Network.ServiceDomain = &network.ServiceDomain
		}
	}
	return runtimehooksv1.Builtins{Cluster: out}
}

// Builtins returns the part for the templates of the control plane and of its Machines. Package topology calls it.
func (c ControlPlane) Builtins() runtimehooksv1.Builtins {
	out := &runtimehooksv1.ControlPlaneBuiltins{
		Name: c.Name, Version: c.Version, Replicas: c.Replicas, Metadata: metadata(c.Metadata),
	}
	if c.InfrastructureTemplate != "" {
		out.MachineTemplate = &runtimehooksv1.ControlPlaneMachineTemplateBuiltins{
			InfrastructureRef: runtimehooksv1.ControlPlaneMachineTemplateInfrastructureRefBuiltins{Name: c.InfrastructureTemplate},
		}
	}
	return runtimehooksv1.Builtins{ControlPlane: out}
}

// DeploymentBuiltins returns the part for the templates of a MachineDeployment. Package topology calls it for each
// template of a worker.
func (w Workers) DeploymentBuiltins() runtimehooksv1.Builtins {
	return runtimehooksv1.Builtins{MachineDeployment: new(w.builtins())}
}

// PoolBuiltins returns the part for the templates of a MachinePool. Package topology calls it for each template of a
// worker.
func (w Workers) PoolBuiltins() runtimehooksv1.Builtins {
	return runtimehooksv1.Builtins{MachinePool: new(runtimehooksv1.MachinePoolBuiltins(w.builtins()))}
}

// builtins returns the fields, which MachineDeployments and MachinePools have in common.
func (w Workers) builtins() runtimehooksv1.MachineDeploymentBuiltins {
	out := runtimehooksv1.MachineDeploymentBuiltins{
		Name: w.Name, TopologyName: w.TopologyName, Class: w.Class, Version: w.Version, Metadata: metadata(w.Metadata),
	}
	if w.Replicas != nil {
		out.Replicas = new(int64(*w.Replicas))
	}
	if w.Bootstrap != "" {
		out.Bootstrap = &runtimehooksv1.MachineBootstrapBuiltins{ConfigRef: &runtimehooksv1.MachineBootstrapConfigRefBuiltins{Name: w.Bootstrap}}
	}
	if w.Infrastructure != "" {
		out.InfrastructureRef = &runtimehooksv1.MachineInfrastructureRefBuiltins{Name: w.Infrastructure}
	}
	return out
}

// metadata returns nil for empty metadata, because the field must have at least one property if it is present.
func metadata(m clusterv1.ObjectMeta) *runtimehooksv1.ObjectMeta {
	if len(m.Labels) == 0 && len(m.Annotations) == 0 {
		return nil
	}
	return &runtimehooksv1.ObjectMeta{Labels: m.Labels, Annotations: m.Annotations}
}

// IsBuiltin reports whether a path refers to a part of the builtin variable that may exist. The webhook of
// ClusterClasses validates paths in patches with it.
func IsBuiltin(p Path) bool {
	at := reflect.TypeFor[runtimehooksv1.Builtins]()
	for _, step := range p.parts[1:] {
		for at.Kind() == reflect.Pointer {
			at = at.Elem()
		}
		switch {
		case step.field == "" && at.Kind() == reflect.Slice, step.field != "" && at.Kind() == reflect.Map:
			at = at.Elem()
		case step.field != "" && at.Kind() == reflect.Struct:
			found, ok := fieldOf(at, step.field)
			if !ok {
				return false
			}
			at = found
		default:
			return false
		}
	}
	return true
}

// fieldOf returns the type of a field by its JSON name.
func fieldOf(t reflect.Type, name string) (reflect.Type, bool) {
	for i := range t.NumField() {
		if tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); tag == name {
			return t.Field(i).Type, true
		}
	}
	return nil, false
}

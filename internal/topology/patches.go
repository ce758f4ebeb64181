package topology

import (
	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/internal/topology/patch"
	"github.com/slipwayhq/slipway/internal/topology/variables"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// Patch applies the patches of the class to the templates. If responses of extensions are missing, it returns the
// requests for them and no templates; the topology controller sends them, and calls Patch again with the responses.
func (d *Draft) Patch(program *patch.Program, answers patch.Responses) (Patched, []patch.ExtensionRequest, error) {
	globals, err := variables.FromTopology(d.Cluster.Spec.Topology.Variables).WithBuiltins(variables.ClusterBuiltins(d.Cluster))
	if err != nil {
		return nil, nil, err
	}
	items := make([]patch.Item, 0, len(d.Sources))
	for _, source := range d.Sources {
		item, err := d.item(source)
		if err != nil {
			return nil, nil, err
		}
		items = append(items, item)
	}
	result, questions, err := program.Apply(globals, items, answers)
	if err != nil || len(questions) > 0 {
		return nil, questions, err
	}
	patched := make(Patched, len(items))
	for i, source := range d.Sources {
		patched[source.Key] = contract.Object{Unstructured: result[items[i].UID], Contract: source.Template.Contract}
	}
	return patched, nil, nil
}

// item returns the input of the patches for a template. Its UID must be the same in each reconciliation, because
// responses of extensions are cached by the content of the request.
func (d *Draft) item(source Source) (patch.Item, error) {
	item := patch.Item{
		UID:  types.UID(uuid.NewSHA1(uuid.NameSpaceOID, []byte(string(d.Cluster.UID)+"/"+source.String())).String()),
		Role: roles()[source.Role], Class: source.Class, Topology: source.Worker, Object: source.Template.Unstructured, Holder: d.holder(source.Key),
	}
	overrides, builtins := d.scope(source.Key)
	var err error
	item.Variables, err = variables.FromTopology(overrides).WithBuiltins(builtins)
	return item, err
}

// roles maps the roles of package topology to the roles of package patch, which selectors of patches distinguish.
func roles() map[Role]patch.Role {
	return map[Role]patch.Role{
		InfraCluster: patch.InfrastructureCluster, ControlPlane: patch.ControlPlane, controlPlaneMachines: patch.ControlPlaneMachines,
		deploymentBootstrap: patch.DeploymentBootstrap, deploymentInfrastructure: patch.DeploymentInfrastructure,
		poolBootstrap: patch.PoolBootstrap, poolInfrastructure: patch.PoolInfrastructure,
	}
}

// scope returns the variable overrides and the builtin variable of a template. Cluster API documents the builtin
// variable.
func (d *Draft) scope(key Key) ([]clusterv1.ClusterVariable, runtimehooksv1.Builtins) {
	topology := d.Cluster.Spec.Topology
	switch key.Role {
	case ControlPlane, controlPlaneMachines:
		class := d.Class.Spec.ControlPlane
		return topology.ControlPlane.Variables.Overrides, variables.ControlPlane{
			Name: d.Names[Key{Role: ControlPlane}], Version: d.Versions.ControlPlane, Replicas: topology.ControlPlane.Replicas,
			Metadata:               d.metadata(Key{Role: ControlPlane}, class.Metadata, topology.ControlPlane.Metadata),
			InfrastructureTemplate: d.Names[Key{Role: controlPlaneMachines}],
		}.Builtins()
	}
	for i := range d.workers {
		w := &d.workers[i]
		if w.Key != key.OfWorker() {
			continue
		}
		values := variables.Workers{
			Name: d.Names[w.Key], TopologyName: key.Worker, Class: w.Class, Version: d.version(w.Key), Replicas: w.Replicas,
			Metadata: d.metadata(w.Key, w.class.Metadata, w.Metadata), Bootstrap: d.Names[w.bootstrap], Infrastructure: d.Names[w.infrastructure],
		}
		if w.Role == Pool {
			return w.Overrides, values.PoolBuiltins()
		}
		return w.Overrides, values.DeploymentBuiltins()
	}
	return nil, runtimehooksv1.Builtins{}
}

// metadata returns the metadata of an object, without additions by its template, because patches may change those.
func (d *Draft) metadata(key Key, class, topology clusterv1.ObjectMeta) clusterv1.ObjectMeta {
	return clusterv1.ObjectMeta{
		Labels:      d.labels(key, class.Labels, topology.Labels),
		Annotations: withoutUpgradeControls(merge(class.Annotations, withoutControlAnnotations(topology.Annotations))),
	}
}

// holder returns a reference to the object that references the part, and the path of the field, as Cluster API
// specifies for requests to extensions.
func (d *Draft) holder(key Key) runtimehooksv1.HolderReference {
	out := runtimehooksv1.HolderReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: clusterv1.ClusterKind, Namespace: d.Cluster.Namespace, Name: d.Cluster.Name,
	}
	switch key.Role {
	case InfraCluster:
		out.FieldPath = "spec.infrastructureRef"
	case ControlPlane:
		out.FieldPath = "spec.controlPlaneRef"
	case controlPlaneMachines:
		ref := d.Class.Spec.ControlPlane.TemplateRef
		content, _ := contract.Template(d.Templates[ref])
		out.APIVersion, out.Kind, out.Name = ref.APIVersion, content.Kind, d.Names[Key{Role: ControlPlane}]
		out.FieldPath = contract.MachineInfrastructure(d.Templates[ref]).Path()
	case deploymentBootstrap, deploymentInfrastructure:
		out.Kind, out.Name = "MachineDeployment", d.Names[key.OfWorker()]
	case poolBootstrap, poolInfrastructure:
		out.Kind, out.Name = "MachinePool", d.Names[key.OfWorker()]
	}
	switch key.Role {
	case deploymentBootstrap, poolBootstrap:
		out.FieldPath = "spec.template.spec.bootstrap.configRef"
	case deploymentInfrastructure, poolInfrastructure:
		out.FieldPath = "spec.template.spec.infrastructureRef"
	}
	return out
}

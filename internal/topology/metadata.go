package topology

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// merge returns the entries of all maps; later maps take precedence.
func merge(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, one := range all {
		maps.Copy(out, one)
	}
	return out
}

// labels returns the labels in others, and the labels that all objects of the topology and its Machines have. Cluster
// API defines them, and the selectors of MachineDeployments and MachineHealthChecks use them, so they must not change.
func (d *Draft) labels(key Key, others ...map[string]string) map[string]string {
	out := merge(others...)
	out[clusterv1.ClusterNameLabel] = d.Cluster.Name
	out[clusterv1.ClusterTopologyOwnedLabel] = ""
	switch key.Role {
	case Deployment, deploymentBootstrap, deploymentInfrastructure:
		out[clusterv1.ClusterTopologyMachineDeploymentNameLabel] = key.Worker
	case Pool, poolBootstrap, poolInfrastructure:
		out[clusterv1.ClusterTopologyMachinePoolNameLabel] = key.Worker
	}
	return ownership.PassWatchLabel(d.Cluster, out)
}

// withoutUpgradeControls removes annotations that control the upgrade of a worker in the topology, in place. They are
// read from spec.topology only. [Draft.Patch] calls it for the annotations of workers.
func withoutUpgradeControls(annotations map[string]string) map[string]string {
	delete(annotations, clusterv1.ClusterTopologyDeferUpgradeAnnotation)
	delete(annotations, clusterv1.ClusterTopologyHoldUpgradeSequenceAnnotation)
	return annotations
}

// origin returns the annotations, defined by Cluster API, that identify the template of the class from which an object
// was created.
func origin(source Source) map[string]string {
	return map[string]string{
		clusterv1.TemplateClonedFromNameAnnotation:      source.Ref.Name,
		clusterv1.TemplateClonedFromGroupKindAnnotation: source.Ref.GroupVersionKind().GroupKind().String(),
	}
}

// newObject returns the desired object that a template of the class describes: an infrastructure cluster, a control
// plane, or an object of a MachinePool. labels and annotations take precedence over the metadata in the template. The
// [builder] calls it for [Draft.DesiredState].
func (d *Draft) newObject(source Source, patched contract.Object, labels, annotations map[string]string) *unstructured.Unstructured {
	content, _ := contract.Template(patched)
	o := d.empty(source, content.Kind)
	o.SetLabels(d.labels(source.Key, content.Labels, labels))
	o.SetAnnotations(merge(content.Annotations, annotations, origin(source)))
	o.Object["spec"] = map[string]any{}
	if content.Spec != nil {
		o.Object["spec"] = runtime.DeepCopyJSON(content.Spec)
	}
	return o
}

// newTemplate returns the desired copy of a class template in the Cluster's namespace, for the Machines of the control
// plane or of a MachineDeployment. The [builder] calls it for [Draft.DesiredState].
func (d *Draft) newTemplate(source Source, patched contract.Object) *unstructured.Unstructured {
	o := d.empty(source, source.Ref.Kind)
	o.SetLabels(d.labels(source.Key, patched.GetLabels()))
	annotations := merge(patched.GetAnnotations(), origin(source))
	delete(annotations, corev1.LastAppliedConfigAnnotation) // refers to the template of the class
	o.SetAnnotations(annotations)
	o.SetOwnerReferences([]metav1.OwnerReference{ownership.ByCluster(d.Cluster)})
	spec, _ := patched.Object["spec"].(map[string]any)
	o.Object["spec"] = runtime.DeepCopyJSON(spec)
	return o
}

func (d *Draft) empty(source Source, kind string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(source.Ref.APIVersion)
	o.SetKind(kind)
	o.SetNamespace(d.Cluster.Namespace)
	o.SetName(d.Names[source.Key])
	return o
}

// ownerReference returns a controller reference to the Cluster, for the objects that the Cluster references. The
// [builder] calls it for the infrastructure cluster and the control plane.
func (d *Draft) ownerReference() []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(d.Cluster, clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind))}
}

// encode returns a core object in the form in which it is applied: without status and fields that only the API server
// sets. The [builder] calls it for MachineDeployments, MachinePools and MachineHealthChecks.
func encode(kind string, o any) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fault.New(fault.Bug, "InvalidObject", "a %s cannot be encoded", kind).From(err)
	}
	out := &unstructured.Unstructured{Object: content}
	out.SetAPIVersion(clusterv1.GroupVersion.String())
	out.SetKind(kind)
	unstructured.RemoveNestedField(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(content, "spec", "template", "metadata", "creationTimestamp")
	return out, nil
}

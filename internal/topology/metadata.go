package topology

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/ownership"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// merge returns the entries of all maps; the later ones take precedence.
func merge(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, one := range all {
		maps.Copy(out, one)
	}
	return out
}

// labels are those of every object of the topology, and of its Machines, on top of the others.
func (d *Draft) labels(key Key, others ...map[string]string) map[string]string {
	out := merge(others...)
	out[clusterv1.ClusterNameLabel] = d.Cluster.Name
	out[clusterv1.ClusterTopologyOwnedLabel] = ""
	switch key.Role {
	case Deployment, DeploymentBootstrap, DeploymentInfrastructure:
		out[clusterv1.ClusterTopologyMachineDeploymentNameLabel] = key.Worker
	case Pool, PoolBootstrap, PoolInfrastructure:
		out[clusterv1.ClusterTopologyMachinePoolNameLabel] = key.Worker
	}
	return ownership.PassWatchLabel(d.Cluster, out)
}

// withoutUpgradeControls returns annotations without those that control the upgrade of a worker from the topology.
func withoutUpgradeControls(annotations map[string]string) map[string]string {
	delete(annotations, clusterv1.ClusterTopologyDeferUpgradeAnnotation)
	delete(annotations, clusterv1.ClusterTopologyHoldUpgradeSequenceAnnotation)
	return annotations
}

// origin are the annotations that name the template of the class.
func origin(source Source) map[string]string {
	return map[string]string{
		clusterv1.TemplateClonedFromNameAnnotation:      source.Ref.Name,
		clusterv1.TemplateClonedFromGroupKindAnnotation: source.Ref.GroupVersionKind().GroupKind().String(),
	}
}

// created returns the object that a template describes, with labels and annotations on top of those of the template.
func (d *Draft) created(source Source, patched contract.Object, labels, annotations map[string]string) *unstructured.Unstructured {
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

// copied returns the template of the Cluster that a template of the class describes.
func (d *Draft) copied(source Source, patched contract.Object) *unstructured.Unstructured {
	o := d.empty(source, source.Ref.Kind)
	o.SetLabels(d.labels(source.Key, patched.GetLabels()))
	annotations := merge(patched.GetAnnotations(), origin(source))
	delete(annotations, lastApplied)
	o.SetAnnotations(annotations)
	o.SetOwnerReferences([]metav1.OwnerReference{ownership.ByCluster(d.Cluster)})
	spec, _ := patched.Object["spec"].(map[string]any)
	o.Object["spec"] = runtime.DeepCopyJSON(spec)
	return o
}

// lastApplied is kubectl's record of what the user applied, which is of the template of the class.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

func (d *Draft) empty(source Source, kind string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(source.Ref.APIVersion)
	o.SetKind(kind)
	o.SetNamespace(d.Cluster.Namespace)
	o.SetName(d.Names[source.Key])
	return o
}

// ownerReference is to the Cluster as the controller of what its references point to.
func (d *Draft) ownerReference() []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(d.Cluster, clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind))}
}

// encode returns an object of the core as it is applied: without status and what only the API server sets.
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

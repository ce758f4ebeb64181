package clone

import (
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// templateSuffix is the suffix of template kinds in the contract of Cluster API: a FooMachineTemplate is the template
// of FooMachines.
const templateSuffix = "Template"

// Options describes a clone to create: the bootstrap config or infrastructure machine of one Machine. Package machines
// fills them in for [New] and [Update], and the KubeadmControlPlane controller for an in-place update, without an
// owner.
type Options struct {
	Template contract.Object
	// Name is the name of the clone. Its namespace is the namespace of the template.
	Name string
	// Cluster is the name of the clone's Cluster.
	Cluster string
	// Owner is the controller of the clone until its Machine takes that role.
	Owner metav1.OwnerReference
	// Labels and Annotations take precedence over the template's metadata.
	Labels, Annotations map[string]string
}

// Ref returns the reference to the clone with this name for the template that ref references. The owners of Machines
// reference the clones of a new Machine by it.
func Ref(ref clusterv1.ContractVersionedObjectReference, name string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: ref.APIGroup, Kind: strings.TrimSuffix(ref.Kind, templateSuffix), Name: name}
}

// New returns the clone, which the owner of the Machine (a MachineSet or a control plane) creates before the Machine.
// For an in-place update, the fields of a new clone are applied to the existing one. New fails if the template has no
// spec.template. Cluster API's contract defines the origin of metadata and the annotations cloned-from-*.
func New(r Options) (*unstructured.Unstructured, error) {
	t := r.Template
	kind, isTemplate := strings.CutSuffix(t.GetKind(), templateSuffix)
	spec, found, err := unstructured.NestedMap(t.Object, "spec", "template", "spec")
	if err == nil && !found {
		_, found, err = unstructured.NestedMap(t.Object, "spec", "template")
	}
	if err != nil || !found || !isTemplate || kind == "" {
		return nil, fault.New(fault.Invalid, "NotATemplate", "%s %s is not a template: it needs a kind that ends with Template and spec.template.spec",
			t.GetKind(), t.GetName())
	}
	clone := &unstructured.Unstructured{Object: map[string]any{}}
	clone.SetAPIVersion(t.GetAPIVersion())
	clone.SetKind(kind)
	clone.SetNamespace(t.GetNamespace())
	clone.SetName(r.Name)
	clone.SetOwnerReferences([]metav1.OwnerReference{r.Owner})
	clone.SetLabels(r.labels())
	clone.SetAnnotations(r.annotations())
	if spec == nil {
		spec = map[string]any{}
	}
	clone.Object["spec"] = spec
	return clone, nil
}

func (r Options) labels() map[string]string {
	out := templateMetadata(r.Template, "labels")
	maps.Copy(out, r.Labels)
	out[clusterv1.ClusterNameLabel] = r.Cluster
	return out
}

func (r Options) annotations() map[string]string {
	out := templateMetadata(r.Template, "annotations")
	maps.Copy(out, r.Annotations)
	out[clusterv1.TemplateClonedFromNameAnnotation] = r.Template.GetName()
	out[clusterv1.TemplateClonedFromGroupKindAnnotation] = r.Template.GroupVersionKind().GroupKind().String()
	return out
}

func templateMetadata(t contract.Object, field string) map[string]string {
	found, _, err := unstructured.NestedStringMap(t.Object, "spec", "template", "metadata", field)
	if err != nil || found == nil {
		return map[string]string{}
	}
	return found
}

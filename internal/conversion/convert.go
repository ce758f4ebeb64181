package conversion

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonsv1beta1 "sigs.k8s.io/cluster-api/api/addons/v1beta1"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1alpha1 "sigs.k8s.io/cluster-api/api/ipam/v1alpha1"
	ipamv1beta1 "sigs.k8s.io/cluster-api/api/ipam/v1beta1"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	runtimev1alpha1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)

const (
	// HubVersion is the storage version of every kind, through which all conversions go.
	HubVersion = "v1beta2"

	// DataAnnotation preserves, on an object in an older version, hub content that the older version has no fields for.
	// Its name and its content are Cluster API's, whose objects have it as well, and must not change.
	DataAnnotation = "cluster.x-k8s.io/conversion-data"

	// unknownVersion is the version in a reference to a kind that no CRD in the cluster serves.
	unknownVersion = "unknown"
)

// VersionOf returns the served version of a kind that implements the newest contract, or "" if there is none.
// References in older versions of Cluster API's kinds include this version.
type VersionOf func(kind schema.GroupKind) string

// Converter converts objects of Cluster API's kinds. The conversion webhook of the manager uses it for requests of the
// API server, `slipway convert` for manifests, and `slipway plan` for the objects of its simulation. It is safe for
// concurrent use.
type Converter struct {
	scheme    *runtime.Scheme
	versionOf VersionOf
}

// New returns a Converter. If versionOf is nil, no version of any kind is known. The conversion webhook, `slipway plan`
// and `slipway convert` call it.
func New(versionOf VersionOf) (*Converter, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clusterv1beta1.AddToScheme, clusterv1.AddToScheme,
		addonsv1beta1.AddToScheme, addonsv1.AddToScheme,
		bootstrapv1beta1.AddToScheme, bootstrapv1.AddToScheme,
		controlplanev1beta1.AddToScheme, controlplanev1.AddToScheme,
		ipamv1alpha1.AddToScheme, ipamv1beta1.AddToScheme, ipamv1.AddToScheme,
		runtimev1alpha1.AddToScheme, runtimev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering the kinds to convert: %w", err)
		}
	}
	return &Converter{scheme: scheme, versionOf: versionOf}, nil
}

// Scheme returns the scheme with all versions of all kinds that can be converted. The conversion webhook and `slipway
// convert` decode objects with it.
func (c *Converter) Scheme() *runtime.Scheme { return c.scheme }

// Convert returns the object in another version of its group. The given object is not modified.
func (c *Converter) Convert(object runtime.Object, version string) (runtime.Object, error) {
	kinds, _, err := c.scheme.ObjectKinds(object)
	if err != nil {
		return nil, fmt.Errorf("finding the version of the object: %w", err)
	}
	from := kinds[0]
	object = object.DeepCopyObject()
	if from.Version == version {
		object.GetObjectKind().SetGroupVersionKind(from)
		return object, nil
	}
	if from.Version != HubVersion {
		if object, err = c.toHub(object); err != nil {
			return nil, fmt.Errorf("converting %s from %s: %w", from.Kind, from.Version, err)
		}
	}
	if version != HubVersion {
		if object, err = c.fromHub(object, version); err != nil {
			return nil, fmt.Errorf("converting %s to %s: %w", from.Kind, version, err)
		}
	}
	return object, nil
}

// fromHub converts a hub to a spoke, and sets the annotation if the spoke cannot represent all of its content.
func (c *Converter) fromHub(hub runtime.Object, version string) (runtime.Object, error) {
	spoke, err := c.down(hub, version)
	if err != nil {
		return nil, err
	}
	again, err := c.up(spoke)
	if err != nil {
		return nil, err
	}
	all, err := contentOf(hub)
	if err != nil {
		return nil, err
	}
	kept, err := contentOf(again)
	if err != nil {
		return nil, err
	}
	if reflect.DeepEqual(all, kept) {
		return spoke, nil
	}
	data, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	return spoke, annotate(spoke, string(data))
}

// toHub converts a spoke to a hub, and restores content from the annotation that was not changed in the spoke.
func (c *Converter) toHub(spoke runtime.Object) (runtime.Object, error) {
	hub, err := c.up(spoke)
	if err != nil {
		return nil, err
	}
	accessor, err := meta.Accessor(hub)
	if err != nil {
		return nil, err
	}
	data, remembered := accessor.GetAnnotations()[DataAnnotation]
	if !remembered {
		return hub, nil
	}
	if err := annotate(hub, ""); err != nil {
		return nil, err
	}
	before := map[string]any{}
	if err := json.Unmarshal([]byte(data), &before); err != nil {
		return nil, fmt.Errorf("the annotation %s cannot be read, remove it: %w", DataAnnotation, err)
	}
	return c.restore(hub, spoke.GetObjectKind().GroupVersionKind().Version, before)
}

// restore applies the changes that a user made to a spoke to the original hub.
func (c *Converter) restore(hub runtime.Object, version string, before map[string]any) (runtime.Object, error) {
	original, err := withContent(hub, before)
	if err != nil {
		return nil, fmt.Errorf("the annotation %s has content of another kind, remove it: %w", DataAnnotation, err)
	}
	spoke, err := c.down(original, version)
	if err != nil {
		return nil, err
	}
	unchanged, err := c.up(spoke)
	if err != nil {
		return nil, err
	}
	contents := make([]map[string]any, 0, 3)
	for _, object := range []runtime.Object{original, unchanged, hub} {
		content, err := contentOf(object)
		if err != nil {
			return nil, err
		}
		contents = append(contents, content)
	}
	merged, _ := merge(contents[0], contents[1], contents[2]).(map[string]any)
	return withContent(hub, merged)
}

// Representable returns the hub with only the content that the fields of another version can represent, without content
// from the annotation. The webhook uses it to validate content that a client wrote in the annotation.
func (c *Converter) Representable(hub runtime.Object, version string) (runtime.Object, error) {
	spoke, err := c.down(hub, version)
	if err != nil {
		return nil, fmt.Errorf("converting %T to %s: %w", hub, version, err)
	}
	return c.up(spoke)
}

// up converts a spoke to a hub using only the fields of the spoke.
func (c *Converter) up(spoke runtime.Object) (runtime.Object, error) {
	spoke = spoke.DeepCopyObject()
	hub, err := c.convert(spoke, HubVersion)
	if err != nil {
		return nil, err
	}
	dropZeros(hub)
	if err := referencesUp(spoke, hub); err != nil {
		return nil, err
	}
	moveFieldsUp(spoke, hub)
	return hub, nil
}

// down converts a hub to a spoke, without setting the annotation.
func (c *Converter) down(hub runtime.Object, version string) (runtime.Object, error) {
	hub = hub.DeepCopyObject()
	spoke, err := c.convert(hub, version)
	if err != nil {
		return nil, err
	}
	dropZeros(spoke)
	c.referencesDown(hub, spoke)
	moveFieldsDown(hub, spoke)
	return spoke, nil
}

// convert runs the conversion functions of the API module.
func (c *Converter) convert(in runtime.Object, version string) (runtime.Object, error) {
	kinds, _, err := c.scheme.ObjectKinds(in)
	if err != nil {
		return nil, err
	}
	kind := kinds[0].GroupKind().WithVersion(version)
	out, err := c.scheme.New(kind)
	if err != nil {
		return nil, err
	}
	if err := c.scheme.Convert(in, out, nil); err != nil {
		return nil, err
	}
	in.GetObjectKind().SetGroupVersionKind(kinds[0])
	out.GetObjectKind().SetGroupVersionKind(kind)
	return out, nil
}

// contentOf returns the content of an object without its type and metadata, as JSON values.
func contentOf(object runtime.Object) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	delete(content, "apiVersion")
	delete(content, "kind")
	delete(content, "metadata")
	return content, nil
}

// withContent returns an object with the type and metadata of the given object and other content.
func withContent(object runtime.Object, content map[string]any) (runtime.Object, error) {
	whole, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	replaced := map[string]any{"apiVersion": whole["apiVersion"], "kind": whole["kind"], "metadata": whole["metadata"]}
	for key, value := range content {
		if _, taken := replaced[key]; !taken {
			replaced[key] = value
		}
	}
	data, err := json.Marshal(replaced)
	if err != nil {
		return nil, err
	}
	out := reflect.New(reflect.TypeOf(object).Elem()).Interface().(runtime.Object)
	if err := json.Unmarshal(data, out); err != nil {
		return nil, err
	}
	return out, nil
}

// annotate sets the data annotation, or removes it if data is empty.
func annotate(object runtime.Object, data string) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	annotations := map[string]string{}
	maps.Copy(annotations, accessor.GetAnnotations())
	annotations[DataAnnotation] = data
	if data == "" {
		delete(annotations, DataAnnotation)
	}
	if len(annotations) == 0 {
		annotations = nil
	}
	accessor.SetAnnotations(annotations)
	return nil
}

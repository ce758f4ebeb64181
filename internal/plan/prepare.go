package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipwayhq/slipway/internal/conversion"
	"github.com/slipwayhq/slipway/internal/crdschema"
	"github.com/slipwayhq/slipway/internal/fault"
)

// PrepareObjects converts all objects of a snapshot and of a change to the versions that the controllers use, and sets
// the given namespace on proposed objects without one. `slipway plan` calls it between reading the objects and [Run].
// Unknown fields are an error, as in `kubectl apply`.
func PrepareObjects(s *Snapshot, c *Change, namespace string) error {
	converter, err := conversion.New(nil)
	if err != nil {
		return err
	}
	if err := unknownFields(s.Kinds.CRDs(), c.Apply); err != nil {
		return err
	}
	for _, list := range [][]*unstructured.Unstructured{s.Objects, c.Apply, c.Delete} {
		for _, u := range list {
			if err := toHub(converter, u); err != nil {
				return err
			}
		}
	}
	cluster := clusterScoped(s.Kinds.CRDs())
	for _, list := range [][]*unstructured.Unstructured{c.Apply, c.Delete} {
		for _, u := range list {
			switch {
			case cluster[u.GroupVersionKind().GroupKind()]:
				u.SetNamespace("")
			case u.GetNamespace() == "":
				u.SetNamespace(namespace)
			}
		}
	}
	return nil
}

// unknownFields returns an error with the fields that are unknown in the version of each object. It must run before the
// conversion, which drops unknown fields.
func unknownFields(crds []*apiextensionsv1.CustomResourceDefinition, objects []*unstructured.Unstructured) error {
	var problems []string
	for _, u := range objects {
		gvk := u.GroupVersionKind()
		at := slices.IndexFunc(crds, func(c *apiextensionsv1.CustomResourceDefinition) bool {
			return c.Spec.Group == gvk.Group && c.Spec.Names.Kind == gvk.Kind
		})
		if at < 0 {
			continue
		}
		unknown, err := crdschema.New(crds[at], gvk.Version).Unknown(u.Object)
		if err != nil {
			return err
		}
		for _, path := range unknown {
			problems = append(problems, fmt.Sprintf("%s %s: unknown field %q", u.GetKind(), u.GetName(), path))
		}
	}
	if len(problems) > 0 {
		return fault.New(fault.Invalid, reasonInvalidInput, "the API rejects the proposed objects; correct them: %s", strings.Join(problems, "; "))
	}
	return nil
}

// clusterScoped returns the kinds without a namespace: of the CRDs, and the built-in kinds that manifests of providers
// have.
func clusterScoped(crds []*apiextensionsv1.CustomResourceDefinition) map[schema.GroupKind]bool {
	out := map[schema.GroupKind]bool{{Kind: "Namespace"}: true, {Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}: true,
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: true}
	for _, crd := range crds {
		if crd.Spec.Scope == apiextensionsv1.ClusterScoped {
			out[schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}] = true
		}
	}
	return out
}

// toHub converts an object and its last applied configuration in place.
func toHub(c *conversion.Converter, u *unstructured.Unstructured) error {
	annotations := u.GetAnnotations()
	if text, ok := annotations[corev1.LastAppliedConfigAnnotation]; ok {
		last := &unstructured.Unstructured{}
		if json.Unmarshal([]byte(text), &last.Object) == nil && convert(c, last) == nil {
			if data, err := json.Marshal(last.Object); err == nil { // a configuration that cannot be read is treated as if it did not exist
				annotations[corev1.LastAppliedConfigAnnotation] = string(data)
				u.SetAnnotations(annotations)
			}
		}
	}
	return convert(c, u)
}

func convert(c *conversion.Converter, u *unstructured.Unstructured) error {
	gvk := u.GroupVersionKind()
	if gvk.Version == conversion.HubVersion || !c.Scheme().Recognizes(gvk) {
		return nil
	}
	o, err := c.Scheme().New(gvk)
	if err != nil {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
		return fault.New(fault.Invalid, reasonInvalidInput, "%s %s cannot be read as %s: %v", u.GetKind(), u.GetName(), gvk.GroupVersion(), err).From(err)
	}
	hub, err := c.Convert(o, conversion.HubVersion)
	if err != nil {
		return fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(hub)
	if err != nil {
		return err
	}
	u.Object = content
	return nil
}

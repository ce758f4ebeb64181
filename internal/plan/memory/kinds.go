package memory

import (
	"context"
	"fmt"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/slipwayhq/slipway/internal/crdschema"
)

// statusSubresource is the only supported subresource.
const statusSubresource = "status"

// kind is a kind of objects in the version in which it is stored, with the behavior that the API server derives from
// its CRD: defaults, validation and field management.
type kind struct {
	gvk        schema.GroupVersionKind
	namespaced bool
	// hasStatus is true if the status is a subresource.
	hasStatus bool
	// crd is nil for the built-in kinds of Kubernetes.
	crd    *apiextensionsv1.CustomResourceDefinition
	schema *crdschema.Schema

	managersOnce sync.Once
	managers     map[string]*managedfields.FieldManager // by subresource
	managersErr  error
}

// Kinds are the kinds of CRDs. Data derived from their schemas is computed once and shared by all APIs with these
// kinds. Package plan creates them for each copy of a management cluster.
type Kinds struct {
	crds  []*apiextensionsv1.CustomResourceDefinition
	kinds map[schema.GroupKind]*kind
}

// NewKinds returns the kinds of CRDs, which must not be modified afterwards. The function version returns the version
// in which a kind is stored in memory, or an empty string for the storage version of the CRD. Package plan calls it.
func NewKinds(crds []*apiextensionsv1.CustomResourceDefinition, version func(*apiextensionsv1.CustomResourceDefinition) string) *Kinds {
	out := &Kinds{crds: crds, kinds: map[schema.GroupKind]*kind{}}
	for _, crd := range crds {
		if k := ofCRD(crd, version(crd)); k.gvk.Kind != "" {
			out.kinds[k.gvk.GroupKind()] = k
		}
	}
	return out
}

// CRDs returns the CRDs of the kinds. Package plan loads them as objects, too, because controllers read CRDs.
func (k *Kinds) CRDs() []*apiextensionsv1.CustomResourceDefinition { return k.crds }

// ofCRD returns the kind in the version, or in the storage version if it is empty.
func ofCRD(crd *apiextensionsv1.CustomResourceDefinition, version string) *kind {
	k := &kind{crd: crd, namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped}
	for _, v := range crd.Spec.Versions {
		if v.Name != version && (version != "" || !v.Storage) {
			continue
		}
		k.gvk = schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}
		k.hasStatus = v.Subresources != nil && v.Subresources.Status != nil
		k.schema = crdschema.New(crd, v.Name)
	}
	return k
}

// complete removes unknown fields and adds the defaults of the schema. API.put calls it for each write, before
// admission.
func (k *kind) complete(content map[string]any) error {
	if k.crd == nil {
		return nil
	}
	return k.schema.Complete(content)
}

// validate checks an object against its schema and, if there are no other errors, against its CEL rules. API.admit
// calls it after admission, except for writes of the status and of simulated components.
func (k *kind) validate(ctx context.Context, content, old map[string]any) field.ErrorList {
	if k.crd == nil {
		return nil
	}
	errs, err := k.schema.Shape(content, old)
	if err == nil && len(errs) == 0 {
		errs, err = k.schema.Rules(ctx, content, old)
	}
	if err != nil {
		errs = append(errs, field.InternalError(nil, err))
	}
	return errs
}

// manager returns the field manager for an object or its status. Each tracked write calls it.
func (k *kind) manager(subresource string) (*managedfields.FieldManager, error) {
	k.managersOnce.Do(func() { k.managers, k.managersErr = k.newManagers() })
	if k.managersErr != nil {
		return nil, fmt.Errorf("preparing field managers of %s: %w", k.gvk.GroupKind(), k.managersErr)
	}
	return k.managers[subresource], nil
}

func (k *kind) newManagers() (map[string]*managedfields.FieldManager, error) {
	converter := managedfields.NewDeducedTypeConverter()
	if k.crd != nil {
		spec, err := builder.BuildOpenAPIV3(k.crd, k.gvk.Version, builder.Options{})
		if err != nil {
			return nil, err
		}
		if converter, err = managedfields.NewTypeConverter(spec.Components.Schemas, k.crd.Spec.PreserveUnknownFields); err != nil {
			return nil, err
		}
	}
	// A subresource does not track ownership of the fields that it cannot write.
	ignored := map[string][]string{"": nil, statusSubresource: {"metadata", "spec"}}
	if k.hasStatus {
		ignored[""] = []string{statusSubresource}
	}
	out := map[string]*managedfields.FieldManager{}
	for subresource, names := range ignored {
		set := fieldpath.NewSet()
		for _, name := range names {
			set.Insert(fieldpath.MakePathOrDie(name))
		}
		reset := fieldpath.NewExcludeFilterSetMap(map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(k.gvk.GroupVersion().String()): set})
		m, err := managedfields.NewDefaultCRDFieldManager(converter, oneVersion{}, oneVersion{}, oneVersion{}, k.gvk, k.gvk.GroupVersion(), subresource, reset)
		if err != nil {
			return nil, err
		}
		out[subresource] = m
	}
	return out, nil
}

// oneVersion converts and defaults objects that have only one version and are already defaulted. The field managers of
// k8s.io/apimachinery require it.
type oneVersion struct{}

func (oneVersion) Convert(in, out, _ any) error { return fmt.Errorf("converting %T to %T", in, out) }

func (oneVersion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (oneVersion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (oneVersion) Default(runtime.Object) {}

func (oneVersion) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	return empty(gvk), nil
}

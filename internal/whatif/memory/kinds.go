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

// statusSubresource is the only one that a kind may have here.
const statusSubresource = "status"

// kind is one kind of objects in the version that it is kept in.
type kind struct {
	gvk        schema.GroupVersionKind
	namespaced bool
	// hasStatus: the status is a subresource.
	hasStatus bool
	// crd is nil for the kinds of Kubernetes itself.
	crd    *apiextensionsv1.CustomResourceDefinition
	schema *crdschema.Schema

	managersOnce sync.Once
	managers     map[string]*managedfields.FieldManager // by subresource
	managersErr  error
}

// Kinds are those of CRDs. What is made of their schemas is made once, and shared by all APIs that have the kinds.
type Kinds struct {
	crds  []*apiextensionsv1.CustomResourceDefinition
	kinds map[schema.GroupKind]*kind
}

// NewKinds returns the kinds of CRDs, which must not be changed any more; version names the version that each is kept in, and
// returns nothing for the one that is stored.
func NewKinds(crds []*apiextensionsv1.CustomResourceDefinition, version func(*apiextensionsv1.CustomResourceDefinition) string) *Kinds {
	out := &Kinds{crds: crds, kinds: map[schema.GroupKind]*kind{}}
	for _, crd := range crds {
		if k := ofCRD(crd, version(crd)); k.gvk.Kind != "" {
			out.kinds[k.gvk.GroupKind()] = k
		}
	}
	return out
}

// CRDs are those that the kinds are of.
func (k *Kinds) CRDs() []*apiextensionsv1.CustomResourceDefinition { return k.crds }

// ofCRD returns the kind in the version; empty: the one that is stored.
func ofCRD(crd *apiextensionsv1.CustomResourceDefinition, version string) *kind {
	k := &kind{crd: crd, namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped}
	for _, v := range crd.Spec.Versions {
		if v.Name != version && (version != "" || !v.Storage) {
			continue
		}
		k.gvk = schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}
		k.hasStatus = v.Subresources != nil && v.Subresources.Status != nil
		k.schema = crdschema.Of(crd, v.Name)
	}
	return k
}

// complete drops what the schema does not know and adds its defaults.
func (k *kind) complete(content map[string]any) error {
	if k.crd == nil {
		return nil
	}
	return k.schema.Complete(content)
}

// validate checks an object by its schema and, where nothing else is wrong, by the rules in it.
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

// manager returns what tracks the fields of an object, or of its status.
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
	// What a subresource does not write is no one's by it.
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

// oneVersion converts and defaults objects of which there is one version, and that have their defaults.
type oneVersion struct{}

// Convert implements runtime.ObjectConvertor.
func (oneVersion) Convert(in, out, _ any) error { return fmt.Errorf("converting %T to %T", in, out) }

// ConvertToVersion implements runtime.ObjectConvertor.
func (oneVersion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (oneVersion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// Default implements runtime.ObjectDefaulter.
func (oneVersion) Default(runtime.Object) {}

// New implements runtime.ObjectCreater.
func (oneVersion) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	return empty(gvk), nil
}

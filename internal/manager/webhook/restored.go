package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/slipwayhq/slipway/internal/conversion"
	"github.com/slipwayhq/slipway/internal/crdschema"
	"github.com/slipwayhq/slipway/internal/manager/crds"
)

// restoration judges what an object of an older version has from the annotation of its conversion. The API server checks
// the older version by its schema, stores the newest, and any client may write the annotation.
type restoration struct {
	converter *conversion.Converter

	once    sync.Once
	schemas map[metav1.GroupVersionResource]*crdschema.Schema
	err     error
}

// read finds the schemas of the stored versions; each is compiled when it is first needed.
func (r *restoration) read() error {
	r.once.Do(func() {
		r.schemas = map[metav1.GroupVersionResource]*crdschema.Schema{}
		var list []*apiextensionsv1.CustomResourceDefinition
		if list, r.err = crds.All(); r.err != nil {
			return
		}
		for _, crd := range list {
			if len(crd.Spec.Versions) < 2 {
				continue
			}
			for _, v := range crd.Spec.Versions {
				if v.Storage {
					resource := metav1.GroupVersionResource{Group: crd.Spec.Group, Version: v.Name, Resource: crd.Spec.Names.Plural}
					r.schemas[resource] = crdschema.Of(crd, v.Name)
				}
			}
		}
	})
	return r.err
}

// violations are what the schema of the stored version has against an object, without what it has against the older
// version's own fields: these are that version's to judge. The hub is the object in its Go form.
func (r *restoration) violations(ctx context.Context, req ctrladmission.Request, hub runtime.Object) (field.ErrorList, error) {
	if req.RequestKind == nil || req.RequestKind.Version == req.Kind.Version || req.SubResource != "" {
		return nil, nil
	}
	if err := r.read(); err != nil {
		return nil, err
	}
	schema, known := r.schemas[req.Resource]
	if !known {
		return nil, fmt.Errorf("no schema for %s in %s/%s", req.Resource.Resource, req.Resource.Group, req.Resource.Version)
	}
	expressed, err := r.expressed(hub, req.RequestKind.Version)
	if err != nil {
		return nil, err
	}
	content, err := contentOf(req.Object.Raw)
	if err != nil || sameContent(content, expressed) {
		return nil, err // nothing is from the annotation
	}
	old, err := contentOf(req.OldObject.Raw)
	if err != nil {
		return nil, err
	}
	errs, err := violationsOf(ctx, schema, content, old)
	if err != nil || len(errs) == 0 {
		return nil, err
	}
	own, err := violationsOf(ctx, schema, expressed, old)
	if err != nil {
		return nil, err
	}
	return without(errs, own), nil
}

// expressed is what of the object the fields of its older version say.
func (r *restoration) expressed(hub runtime.Object, version string) (map[string]any, error) {
	expressed, err := r.converter.Expressed(hub, version)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(expressed)
	if err != nil {
		return nil, err
	}
	return contentOf(data)
}

// violationsOf are all that the schema has against an object. Rules are evaluated whatever else is wrong, since that may be
// what the older version allows.
func violationsOf(ctx context.Context, schema *crdschema.Schema, content, old map[string]any) (field.ErrorList, error) {
	if err := schema.Complete(content); err != nil {
		return nil, err
	}
	shape, err := schema.Shape(content, old)
	if err != nil {
		return nil, err
	}
	rules, err := schema.Rules(ctx, content, old)
	return append(shape, rules...), err
}

// contentOf reads an object; nil: there is none.
func contentOf(data []byte) (map[string]any, error) {
	if len(data) == 0 {
		return nil, nil
	}
	content := map[string]any{}
	if err := utiljson.Unmarshal(data, &content); err != nil {
		return nil, fmt.Errorf("reading the object: %w", err)
	}
	return content, nil
}

// sameContent compares two objects without their metadata, which the annotation does not bring.
func sameContent(a, b map[string]any) bool {
	a, b = maps.Clone(a), maps.Clone(b)
	delete(a, "metadata")
	delete(b, "metadata")
	return reflect.DeepEqual(a, b)
}

// without returns the errors that are not among others.
func without(errs, others field.ErrorList) field.ErrorList {
	known := sets.New[string]()
	for _, err := range others {
		known.Insert(err.Error())
	}
	var out field.ErrorList
	for _, err := range errs {
		if !known.Has(err.Error()) {
			out = append(out, err)
		}
	}
	return out
}

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

// restoration validates, as part of each validating webhook call, the parts of an object in an older version that were
// restored from its conversion annotation. The API server validates the object against the schema of the older version
// only, but stores the newest version, and any client can write the annotation.
type restoration struct {
	converter *conversion.Converter

	once    sync.Once
	schemas map[metav1.GroupVersionResource]*crdschema.Schema
	err     error
}

// read loads the schemas of the storage versions. Each is compiled when it is first used.
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
					r.schemas[resource] = crdschema.New(crd, v.Name)
				}
			}
		}
	})
	return r.err
}

// violations returns the errors of an object against the schema of the storage version. It leaves out errors
// of fields that the older version has itself, because the schema of that version applies to them. The
// argument hub is the decoded object. validate of [reviewer] calls it.
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
		return nil, err // no field comes from the annotation
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
	return exclude(errs, own), nil
}

// expressed returns the part of the object that the fields of its older version define.
func (r *restoration) expressed(hub runtime.Object, version string) (map[string]any, error) {
	expressed, err := r.converter.Representable(hub, version)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(expressed)
	if err != nil {
		return nil, err
	}
	return contentOf(data)
}

// violationsOf returns all errors of an object against the schema. Validation rules are evaluated even if the
// structure is invalid, because the older version may allow it.
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

// contentOf decodes an object. It is nil if data is empty.
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

// sameContent compares two objects without metadata, which the annotation does not contain.
func sameContent(a, b map[string]any) bool {
	a, b = maps.Clone(a), maps.Clone(b)
	delete(a, "metadata")
	delete(b, "metadata")
	return reflect.DeepEqual(a, b)
}

// exclude returns the errors that are not among others.
func exclude(errs, others field.ErrorList) field.ErrorList {
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

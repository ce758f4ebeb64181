package crdschema

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// Schema is the schema of one version of a CRD, compiled for validation in this process. The in-memory API of
// `slipway plan` validates writes with it, and a webhook the parts of an object that were restored by conversion. It
// must accept what the API server accepts. It is safe for concurrent use.
type Schema struct {
	crd     *apiextensionsv1.CustomResourceDefinition
	version string

	formOnce   sync.Once
	structural *structuralschema.Structural
	internal   *apiextensions.JSONSchemaProps
	formErr    error

	rulesOnce sync.Once
	validator validation.SchemaValidator
	rules     *cel.Validator
	rulesErr  error
}

// New returns the schema of a version of a CRD. The CRD must not be changed afterwards. A version that does not exist
// or has no schema accepts everything. `slipway plan` and the check of conversion annotations in package webhook call
// it.
func New(crd *apiextensionsv1.CustomResourceDefinition, version string) *Schema {
	return &Schema{crd: crd, version: version}
}

// form converts the schema to its structural form.
func (s *Schema) form() error {
	s.formOnce.Do(func() {
		for _, v := range s.crd.Spec.Versions {
			if v.Name != s.version || v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
				continue
			}
			s.internal = &apiextensions.JSONSchemaProps{}
			if s.formErr = apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, s.internal, nil); s.formErr != nil {
				return
			}
			s.structural, s.formErr = structuralschema.NewStructural(s.internal)
		}
	})
	if s.formErr != nil {
		return fmt.Errorf("reading the schema of %s: %w", s.crd.Name, s.formErr)
	}
	return nil
}

// compile compiles the validators; nothing is validated if there is no schema.
func (s *Schema) compile() error {
	if err := s.form(); err != nil || s.structural == nil {
		return err
	}
	s.rulesOnce.Do(func() {
		s.validator, _, s.rulesErr = validation.NewSchemaValidator(s.internal)
		s.rules = cel.NewValidator(s.structural, true, celconfig.PerCallLimit)
	})
	if s.rulesErr != nil {
		return fmt.Errorf("compiling the schema of %s: %w", s.crd.Name, s.rulesErr)
	}
	return nil
}

// Complete prunes unknown fields and sets defaults, in place. Call it before the validation, which expects complete
// content.
func (s *Schema) Complete(content map[string]any) error {
	if err := s.form(); err != nil || s.structural == nil {
		return err
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(content, s.structural)
	defaulting.Default(content, s.structural)
	if !s.crd.Spec.PreserveUnknownFields {
		pruning.Prune(content, s.structural, true)
	}
	return nil
}

// Unknown returns the paths of unknown fields in an object, sorted. The object is not modified. `slipway plan` reports
// them for manifests.
func (s *Schema) Unknown(content map[string]any) ([]string, error) {
	if err := s.form(); err != nil || s.structural == nil || s.crd.Spec.PreserveUnknownFields {
		return nil, err
	}
	return pruning.PruneWithOptions(runtime.DeepCopyJSON(content), s.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}), nil
}

// Shape returns all violations except violations of CEL rules; old is nil on create. The error is only for an invalid
// schema.
func (s *Schema) Shape(content, old map[string]any) (field.ErrorList, error) {
	if err := s.compile(); err != nil || s.structural == nil {
		return nil, err
	}
	var errs field.ErrorList
	lists := true
	if old == nil {
		errs = validation.ValidateCustomResource(nil, content, s.validator)
	} else {
		errs = validation.ValidateCustomResourceUpdate(nil, content, old, s.validator, validation.WithRatcheting(s.correlate(content, old)))
		lists = len(listtype.ValidateListSetsAndMaps(nil, s.structural, old)) == 0
	}
	errs = append(errs, objectmeta.Validate(nil, content, s.structural, false)...)
	if lists {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, content)...)
	}
	return errs, nil
}

// Rules returns the violations of the CEL rules; old is nil on create. It returns an error if not all rules could be
// evaluated, because the object exceeds the cost budget or the context ended. The API server evaluates them only if
// [Schema.Shape] found no violations.
func (s *Schema) Rules(ctx context.Context, content, old map[string]any) (field.ErrorList, error) {
	if err := s.compile(); err != nil || s.rules == nil {
		return nil, err
	}
	var before any
	var options []cel.Option
	if old != nil {
		before = old
		options = append(options, cel.WithRatcheting(s.correlate(content, old)))
	}
	errs, left := s.rules.Validate(ctx, nil, s.structural, content, before, celconfig.RuntimeCELCostBudget, options...)
	if err := ctx.Err(); err != nil {
		return errs, fmt.Errorf("evaluating the rules of %s: %w", s.crd.Name, err)
	}
	if left < 0 {
		return errs, fmt.Errorf("evaluating the rules of %s: the object is too large for all of them", s.crd.Name)
	}
	return errs, nil
}

// correlate correlates an object with its previous version.
func (s *Schema) correlate(content, old map[string]any) *common.CorrelatedObject {
	return common.NewCorrelatedObject(content, old, &model.Structural{Structural: s.structural})
}

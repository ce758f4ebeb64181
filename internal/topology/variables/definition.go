package variables

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/utils/lru"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// definition is the definition of one variable in a class, with the methods to validate values. Its schema is compiled
// on first use. [Definitions] caches it until it changes.
type definition struct {
	name     string
	required bool
	// conflict means that the class and its extensions, or two extensions, define the variable differently.
	conflict bool
	schema   clusterv1.JSONSchemaProps
	compiled func() (*compiled, error)
	// seen caches values that are known to be valid, or to need no defaults, because most values do not change between
	// calls.
	seen *lru.Cache // keys of type cachedResult, without values
}

// cachedResult is a cached property of a value.
type cachedResult struct {
	about string // isValid or isComplete
	value string
}

const (
	isValid    = "valid"
	isComplete = "complete"

	// maxCachedValues is the maximum number of results cached for one definition, maxCachedBytes the maximum length of
	// a cached value. Both are our choice.
	maxCachedValues = 128
	maxCachedBytes  = 2048
)

// isKnown reports whether a result for a value is cached. [Definitions] checks it before it evaluates the schema, which
// takes much longer.
func (d *definition) isKnown(about string, value apiextensionsv1.JSON) bool {
	if len(value.Raw) > maxCachedBytes {
		return false
	}
	_, known := d.seen.Get(cachedResult{about, string(value.Raw)})
	return known
}

// cacheResult caches a result for a value. [Definitions] calls it after an evaluation without an error.
func (d *definition) cacheResult(about string, value apiextensionsv1.JSON) {
	if len(value.Raw) <= maxCachedBytes {
		d.seen.Add(cachedResult{about, string(value.Raw)}, nil)
	}
}

// compiled is a schema in the forms that the validation libraries require.
type compiled struct {
	structural *schema.Structural
	values     validation.SchemaValidator
	rules      *cel.Validator
	// fallback is the default of the whole value, or nil. fills is true if a part of the value has a default.
	fallback *apiextensionsv1.JSON
	fills    bool
}

// newDefinition returns the definition of a variable, whose schema is compiled at its first use.
func newDefinition(v clusterv1.ClusterClassStatusVariable) *definition {
	d := &definition{name: v.Name, conflict: v.DefinitionsConflict != nil && *v.DefinitionsConflict, seen: lru.New(maxCachedValues)}
	for i, from := range v.Definitions {
		d.required = d.required || from.Required != nil && *from.Required
		if i == 0 {
			d.schema = from.Schema.OpenAPIV3Schema
		}
	}
	d.compiled = sync.OnceValues(func() (*compiled, error) { return compile(d.schema) })
	return d
}

// isSame reports whether the compiled form of the other definition can be used for this one. newDefinitions calls it
// when a class has changed.
func (d *definition) isSame(other *definition) bool {
	return d.name == other.name && d.required == other.required && d.conflict == other.conflict &&
		reflect.DeepEqual(d.schema, other.schema)
}

func compile(s clusterv1.JSONSchemaProps) (*compiled, error) {
	props, err := propsOf(s)
	if err != nil {
		return nil, err
	}
	structural, err := schema.NewStructural(props)
	if err != nil {
		return nil, fmt.Errorf("the schema is not structural: %w", err)
	}
	values, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return nil, fmt.Errorf("the schema cannot be used: %w", err)
	}
	return &compiled{
		structural: structural, values: values, fallback: s.Default, fills: hasDefaults(structural),
		rules: cel.NewValidator(structural, false, celconfig.PerCallLimit),
	}, nil
}

// hasDefaults reports whether a part of the value, below its root, has a default.
func hasDefaults(s *schema.Structural) bool {
	depth, found := 0, false
	v := schema.Visitor{Structural: func(at *schema.Structural) bool {
		found = found || depth > 0 && at.Default.Object != nil
		depth++
		return false
	}}
	v.Visit(s)
	return found
}

// defaulted returns the value with the defaults of its parts; changed is false if it already has them.
// [Definitions.Default] calls it.
func (c *compiled) defaulted(raw apiextensionsv1.JSON) (out apiextensionsv1.JSON, changed bool, err error) {
	if !c.fills {
		return raw, false, nil
	}
	before, err := decode(raw)
	if err != nil {
		return raw, false, err
	}
	after := runtime.DeepCopyJSONValue(before)
	defaulting.Default(after, c.structural)
	if reflect.DeepEqual(before, after) {
		return raw, false, nil
	}
	out, err = encode(after)
	return out, err == nil, err
}

// validate validates a value against its schema, rejects unknown fields, and evaluates the CEL rules. old is the
// previous value; if it is nil, transition rules are not evaluated. [Definitions.Validate] calls it for values in a
// topology, and [ValidateDefinitions] for the examples of a schema.
func (c *compiled) validate(value, old any, path *field.Path) field.ErrorList {
	if errs := validation.ValidateCustomResource(path, value, c.values); len(errs) > 0 {
		return errs
	}
	if errs := c.unknownFields(value, path); len(errs) > 0 {
		return errs
	}
	errs, _ := c.rules.Validate(context.Background(), path, c.structural, value, old, celconfig.RuntimeCELCostBudget)
	return errs
}

func (c *compiled) unknownFields(value any, path *field.Path) field.ErrorList {
	if _, isObject := value.(map[string]any); !isObject {
		if _, isArray := value.([]any); !isArray {
			return nil
		}
	}
	unknown := pruning.PruneWithOptions(runtime.DeepCopyJSONValue(value), c.structural, false, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	slices.Sort(unknown)
	var errs field.ErrorList
	for _, name := range unknown {
		errs = append(errs, field.Invalid(path.Child(name), name, "field is not in the schema of the variable; remove it"))
	}
	return errs
}

package variables

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/yaml"
)

// read reads what is written in YAML, such as a schema.
func read[T any](t testing.TB, text string) T {
	t.Helper()
	var out T
	if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// define is a definition with a schema.
func define(t testing.TB, name, schema string) clusterv1.ClusterClassVariable {
	t.Helper()
	return clusterv1.ClusterClassVariable{Name: name, Required: new(false), Schema: clusterv1.VariableSchema{
		OpenAPIV3Schema: read[clusterv1.JSONSchemaProps](t, schema),
	}}
}

func texts(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}

func TestValidateDefinitions(t *testing.T) { // CC-12
	const at = "spec.variables[0].schema.openAPIV3Schema"
	nested := `{type: object, properties: {a: {type: array, maxItems: 5, items: {type: string, maxLength: 10}}, m: {type: object, additionalProperties: {type: boolean}}}}`
	for name, c := range map[string]struct {
		schema, old string
		want        []string
	}{
		"every type":          {schema: nested},
		"limits":              {schema: `{type: integer, minimum: 1, maximum: 5, exclusiveMinimum: true, default: 3, example: 4, enum: [2, 3, 4]}`},
		"strings":             {schema: `{type: string, format: uri, pattern: "^h", minLength: 1, maxLength: 99}`},
		"combined":            {schema: `{type: object, properties: {a: {type: string}, b: {type: string}}, oneOf: [{required: [a]}, {required: [b]}]}`},
		"int or string":       {schema: `{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}`},
		"anything":            {schema: `{type: object, x-kubernetes-preserve-unknown-fields: true}`},
		"a rule":              {schema: `{type: integer, x-kubernetes-validations: [{rule: self >= oldSelf, messageExpression: "self > 3 ? 'high' : 'low'", reason: FieldValueForbidden}]}`},
		"a field path":        {schema: `{type: object, properties: {a: {type: integer}}, x-kubernetes-validations: [{rule: self.a > 1, fieldPath: .a}]}`},
		"metadata":            {schema: `{type: string, x-metadata: {labels: {a: b}, annotations: {c: d}}}`},
		"no type":             {schema: `{minimum: 1}`, want: []string{at + ".type: Required value: must not be empty for specified object fields"}},
		"array without items": {schema: `{type: array}`, want: []string{at + ".items: Required value: must be specified"}},
		"wrong default":       {schema: `{type: integer, default: x}`, want: []string{at + `.default: Invalid value: "string":  in body must be of type integer: "string"`}},
		"default with an unknown field": {schema: `{type: object, properties: {a: {type: string}}, default: {b: x}}`,
			want: []string{at + `.default: Invalid value: {"b":"x"}: must not have unknown fields`}},
		"wrong example": {schema: `{type: integer, maximum: 3, example: 4}`, want: []string{at + `.example: Invalid value: 4:  in body should be less than or equal to 3`}},
		"wrong example of a part": {schema: `{type: object, properties: {a: {type: array, items: {type: integer, maximum: 3, example: 4}}}}`,
			want: []string{at + `.properties[a].items.example: Invalid value: 4:  in body should be less than or equal to 3`}},
		"example of a part that a rule refuses": {schema: `{type: object, additionalProperties: {type: string, example: a, x-kubernetes-validations: [{rule: "self != 'a'", message: never a}]}}`,
			want: []string{at + `.additionalProperties.example: Invalid value: "a": never a`}},
		"wrong enum of a part": {schema: `{type: object, properties: {a: {type: string, maxLength: 1, enum: [bb]}}}`,
			want: []string{at + `.properties[a].enum[0]: Too long: may not be more than 1 byte`}},
		"wrong enum":   {schema: `{type: string, enum: [1]}`, want: []string{at + `.enum[0]: Invalid value: "integer":  in body must be of type string: "integer"`}},
		"unique items": {schema: `{type: array, items: {type: string}, uniqueItems: true}`, want: []string{at + ".uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic"}},
		"properties and additionalProperties": {schema: `{type: object, properties: {a: {type: string}}, additionalProperties: {type: string}}`,
			want: []string{at + ".additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"}},
		"wrong pattern": {schema: `{type: string, pattern: "("}`, want: []string{at + ".pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`"}},
		"a rule that is none": {schema: `{type: string, maxLength: 5, x-kubernetes-validations: [{rule: self.foo}]}`,
			want: []string{at + ".x-kubernetes-validations[0].rule: Invalid value: \"self.foo\": compilation failed: ERROR: <input>:1:5: type 'string' does not support field selection\n | self.foo\n | ....^"}},
		"a rule that is no condition": {schema: `{type: integer, x-kubernetes-validations: [{rule: self + 1}]}`,
			want: []string{at + `.x-kubernetes-validations[0].rule: Invalid value: "self + 1": cel expression must evaluate to a bool`}},
		"a message that is no text": {schema: `{type: integer, x-kubernetes-validations: [{rule: self > 1, messageExpression: self}]}`,
			want: []string{at + `.x-kubernetes-validations[0].messageExpression: Invalid value: "self > 1": messageExpression must evaluate to a string`}},
		"a field path to nothing": {schema: `{type: object, properties: {a: {type: integer}}, x-kubernetes-validations: [{rule: self.a > 1, fieldPath: .b}]}`,
			want: []string{at + `.x-kubernetes-validations[0].fieldPath: Invalid value: ".b": must be a valid path`}},
		"an expensive rule": {schema: `{type: array, items: {type: array, items: {type: string}}, x-kubernetes-validations: [{rule: "self.all(x, self.all(y, x == y))"}]}`,
			want: []string{
				at + ".x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)",
				at + ".x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema",
				at + ": Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)",
			}},
		"an old rule in a list that cannot be correlated": {schema: `{type: array, items: {type: integer, x-kubernetes-validations: [{rule: self > oldSelf}]}}`,
			want: []string{at + `.items.x-kubernetes-validations[0].rule: Invalid value: "self > oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within ` + at}},
		"metadata that is not valid": {schema: `{type: object, properties: {a: {type: string, x-metadata: {labels: {"a b": c}}}}}`,
			want: []string{at + `.properties[a].x-metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`}},
	} {
		t.Run(name, func(t *testing.T) {
			var old []clusterv1.ClusterClassVariable
			if c.old != "" {
				old = append(old, define(t, "a", c.old))
			}
			errs := ValidateDefinitions([]clusterv1.ClusterClassVariable{define(t, "a", c.schema)}, old, field.NewPath("spec", "variables"))
			if diff := cmp.Diff(c.want, texts(errs)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestValidateNames(t *testing.T) { // CC-13
	for name, c := range map[string]struct {
		names []string
		want  []string
	}{
		"valid":      {names: []string{"a", "image-repository", "builtins"}},
		"empty":      {names: []string{""}, want: []string{`spec.variables[0].name: Required value: a variable needs a name`}},
		"builtin":    {names: []string{"builtin"}, want: []string{`spec.variables[0].name: Invalid value: "builtin": is the name of a predefined variable; choose another name`}},
		"with a dot": {names: []string{"a.b"}, want: []string{`spec.variables[0].name: Invalid value: "a.b": must not contain a dot, because it separates fields in paths of variables`}},
		"bracket":    {names: []string{"a[0]"}, want: []string{`spec.variables[0].name: Invalid value: "a[0]": must not contain brackets, because they enclose an index in paths of variables`}},
		"twice":      {names: []string{"a", "a"}, want: []string{`spec.variables[1].name: Duplicate value: "a"`}},
	} {
		t.Run(name, func(t *testing.T) {
			var list []clusterv1.ClusterClassVariable
			for _, n := range c.names {
				list = append(list, define(t, n, `{type: string}`))
			}
			if diff := cmp.Diff(c.want, texts(ValidateDefinitions(list, nil, field.NewPath("spec", "variables")))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestRatcheting: a schema that was accepted stays accepted while it does not change.
func TestRatcheting(t *testing.T) { // CC-12
	expensive := `{type: array, items: {type: array, items: {type: string}}, x-kubernetes-validations: [{rule: "self.all(x, self.all(y, x == y))"}]}`
	old := []clusterv1.ClusterClassVariable{define(t, "a", expensive)}
	if errs := ValidateDefinitions(old, old, field.NewPath("spec", "variables")); len(errs) > 0 {
		t.Errorf("an unchanged schema is refused: %v", errs)
	}
	changed := []clusterv1.ClusterClassVariable{define(t, "a", `{description: new, `+expensive[1:])}
	if errs := ValidateDefinitions(changed, old, field.NewPath("spec", "variables")); len(errs) == 0 {
		t.Error("a changed schema is not checked again")
	}
}

// definitionsOf are the definitions of a class that defines variables inline; a name that ends with ! is required.
func definitionsOf(t testing.TB, schemas map[string]string) *Definitions {
	t.Helper()
	return NewDefinitions(statusOf(t, schemas))
}

func statusOf(t testing.TB, schemas map[string]string) []clusterv1.ClusterClassStatusVariable {
	t.Helper()
	var list []clusterv1.ClusterClassStatusVariable
	names := make([]string, 0, len(schemas))
	for name := range schemas {
		names = append(names, name)
	}
	for _, name := range sorted(names) {
		required := name[len(name)-1] == '!'
		plain := name
		if required {
			plain = name[:len(name)-1]
		}
		list = append(list, clusterv1.ClusterClassStatusVariable{Name: plain, Definitions: []clusterv1.ClusterClassStatusVariableDefinition{{
			From: clusterv1.VariableDefinitionFromInline, Required: &required,
			Schema: clusterv1.VariableSchema{OpenAPIV3Schema: read[clusterv1.JSONSchemaProps](t, schemas[name])},
		}}})
	}
	return list
}

func sorted(names []string) []string {
	for i := range names {
		for j := i; j > 0 && names[j] < names[j-1]; j-- {
			names[j], names[j-1] = names[j-1], names[j]
		}
	}
	return names
}

func topologyOf(t testing.TB, text string) *clusterv1.Topology {
	t.Helper()
	return new(read[clusterv1.Topology](t, text))
}

func TestDefault(t *testing.T) { // TP-17
	definitions := definitionsOf(t, map[string]string{
		"count": `{type: integer, default: 3}`,
		"disk":  `{type: object, properties: {size: {type: integer, default: 20}, kind: {type: string, default: ssd}}}`,
		"plain": `{type: string}`,
		"whole": `{type: object, default: {}, properties: {on: {type: boolean, default: true}}}`,
	})
	for name, c := range map[string]struct{ topology, want string }{
		"defaults of whole values": {`{}`, `{variables: [{name: count, value: 3}, {name: whole, value: {on: true}}]}`},
		"values stay":              {`{variables: [{name: whole, value: {on: false}}, {name: count, value: 1}]}`, `{variables: [{name: whole, value: {on: false}}, {name: count, value: 1}]}`},
		"parts": {`{variables: [{name: count, value: 1}, {name: disk, value: {size: 5}}, {name: whole, value: {on: true}}]}`,
			`{variables: [{name: count, value: 1}, {name: disk, value: {kind: ssd, size: 5}}, {name: whole, value: {on: true}}]}`},
		"overrides get parts and are not added": {
			`{variables: [{name: count, value: 1}, {name: whole, value: {on: true}}], controlPlane: {variables: {overrides: [{name: disk, value: {}}]}}, workers: {machineDeployments: [{name: a, variables: {overrides: [{name: disk, value: {kind: hdd}}]}}], machinePools: [{name: b, variables: {overrides: [{name: disk, value: {}}]}}]}}`,
			`{variables: [{name: count, value: 1}, {name: whole, value: {on: true}}], controlPlane: {variables: {overrides: [{name: disk, value: {kind: ssd, size: 20}}]}}, workers: {machineDeployments: [{name: a, variables: {overrides: [{name: disk, value: {kind: hdd, size: 20}}]}}], machinePools: [{name: b, variables: {overrides: [{name: disk, value: {kind: ssd, size: 20}}]}}]}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			topology := topologyOf(t, c.topology)
			changed := definitions.Default(topology)
			if diff := cmp.Diff(topologyOf(t, c.want), topology); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if changed != (c.topology != c.want) {
				t.Errorf("changed is %t", changed)
			}
			if definitions.Default(topology) {
				t.Error("defaulting twice changes something")
			}
		})
	}
}

func TestValidate(t *testing.T) { // TP-17
	definitions := definitionsOf(t, map[string]string{
		"count": `{type: integer, description: "How many, for example 3", maximum: 9, x-kubernetes-validations: [{rule: self >= oldSelf, messageExpression: "'cannot go below ' + string(oldSelf)"}]}`,
		"disk":  `{type: object, required: [size], properties: {size: {type: integer}, kind: {type: string, enum: [ssd, hdd]}}, x-kubernetes-validations: [{rule: "self.size < 100 || self.kind == 'hdd'", message: "large disks are hdd", fieldPath: .kind, reason: FieldValueForbidden}]}`,
		"name!": `{type: string, pattern: "^[a-z]+$"}`,
	})
	const named = `{name: name, value: x}`
	for name, c := range map[string]struct {
		topology, old string
		want          []string
	}{
		"valid":            {topology: `{variables: [` + named + `, {name: count, value: 9}, {name: disk, value: {size: 1, kind: ssd}}]}`},
		"required":         {topology: `{}`, want: []string{"spec.topology.variables: Required value: variable name is required: set it"}},
		"unknown":          {topology: `{variables: [` + named + `, {name: x, value: 1}]}`, want: []string{`spec.topology.variables[x]: Invalid value: "x": variable is not defined in the ClusterClass, which has count, disk, name; remove it`}},
		"twice":            {topology: `{variables: [` + named + `, ` + named + `]}`, want: []string{`spec.topology.variables[name]: Duplicate value: "name"`}},
		"wrong type":       {topology: `{variables: [{name: name, value: 1}]}`, want: []string{`spec.topology.variables[name].value: Invalid value: 1: in body must be of type string: "integer"`}},
		"null":             {topology: `{variables: [{name: name, value: null}]}`, want: []string{`spec.topology.variables[name].value: Invalid value: "": must be JSON`}},
		"too high":         {topology: `{variables: [` + named + `, {name: count, value: 10}]}`, want: []string{`spec.topology.variables[count].value: Invalid value: 10: in body should be less than or equal to 9 (How many, for example 3)`}},
		"pattern":          {topology: `{variables: [{name: name, value: A}]}`, want: []string{`spec.topology.variables[name].value: Invalid value: "A": in body should match '^[a-z]+$'`}},
		"nested, required": {topology: `{variables: [` + named + `, {name: disk, value: {kind: ssd}}]}`, want: []string{`spec.topology.variables[disk].value.size: Required value`}},
		"nested, unknown":  {topology: `{variables: [` + named + `, {name: disk, value: {size: 1, kind: ssd, x: 1}}]}`, want: []string{`spec.topology.variables[disk].value.x: Invalid value: "x": field is not in the schema of the variable; remove it`}},
		"enum":             {topology: `{variables: [` + named + `, {name: disk, value: {size: 1, kind: tape}}]}`, want: []string{`spec.topology.variables[disk].value.kind: Unsupported value: "tape": supported values: "ssd", "hdd"`}},
		"a rule":           {topology: `{variables: [` + named + `, {name: disk, value: {size: 100, kind: ssd}}]}`, want: []string{`spec.topology.variables[disk].value.kind: Forbidden: large disks are hdd`}},
		"a rule about a change": {
			topology: `{variables: [` + named + `, {name: count, value: 1}]}`, old: `{variables: [` + named + `, {name: count, value: 2}]}`,
			want: []string{`spec.topology.variables[count].value: Invalid value: 1: cannot go below 2 (How many, for example 3)`},
		},
		"a rule about a change, no value before": {topology: `{variables: [` + named + `, {name: count, value: 1}]}`, old: `{variables: [` + named + `]}`},
		"a rule about a change of an override": {
			topology: `{variables: [` + named + `], workers: {machineDeployments: [{name: a, variables: {overrides: [{name: count, value: 1}]}}, {name: b, variables: {overrides: [{name: count, value: 1}]}}]}}`,
			old:      `{variables: [` + named + `], workers: {machineDeployments: [{name: b, variables: {overrides: [{name: count, value: 5}]}}, {name: a, variables: {overrides: [{name: count, value: 1}]}}]}}`,
			want:     []string{`spec.topology.workers.machineDeployments[b].variables.overrides[count].value: Invalid value: 1: cannot go below 5 (How many, for example 3)`},
		},
		"overrides": {
			topology: `{variables: [` + named + `], controlPlane: {variables: {overrides: [{name: name, value: A}]}}, workers: {machinePools: [{name: p, variables: {overrides: [{name: x, value: A}]}}]}}`,
			want: []string{
				`spec.topology.controlPlane.variables.overrides[name].value: Invalid value: "A": in body should match '^[a-z]+$'`,
				`spec.topology.workers.machinePools[p].variables.overrides[x]: Invalid value: "x": variable is not defined in the ClusterClass, which has count, disk, name; remove it`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var old *clusterv1.Topology
			if c.old != "" {
				old = topologyOf(t, c.old)
			}
			for _, time := range []string{"first", "again"} { // what is remembered changes nothing
				errs := definitions.Validate(topologyOf(t, c.topology), old, field.NewPath("spec", "topology"))
				if diff := cmp.Diff(c.want, texts(errs)); diff != "" {
					t.Errorf("%s (-want +got)\n%s", time, diff)
				}
			}
		})
	}
}

func TestConflict(t *testing.T) { // CC-03, TP-17
	list := statusOf(t, map[string]string{"a": `{type: string, default: x}`})
	list[0].DefinitionsConflict = new(true)
	definitions := NewDefinitions(list)
	topology := topologyOf(t, `{variables: [{name: a, value: y}]}`)
	want := []string{`variables[a]: Invalid value: "a": the ClusterClass and its extensions define the variable differently: make the definitions equal, or rename one of them`}
	if diff := cmp.Diff(want, texts(definitions.Validate(topology, nil, nil))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if empty := topologyOf(t, `{}`); definitions.Default(empty) {
		t.Errorf("defaulted to %v", empty.Variables)
	}
}

// TestSchemas: what is compiled is used until the definition changes.
func TestSchemas(t *testing.T) { // TP-17
	schemas := NewSchemas()
	class := &clusterv1.ClusterClass{}
	class.UID, class.ResourceVersion = "u", "1"
	class.Status.Variables = statusOf(t, map[string]string{"a": `{type: string}`, "b": `{type: string}`})
	first := schemas.Of(class)
	if schemas.Of(class) != first {
		t.Error("the same version of a class is compiled again")
	}
	class.ResourceVersion = "2"
	class.Status.Variables = statusOf(t, map[string]string{"a": `{type: string}`, "b": `{type: integer}`})
	second := schemas.Of(class)
	if second.byName["a"] != first.byName["a"] || second.byName["b"] == first.byName["b"] {
		t.Error("a definition that changed is used as it was, or one that did not is compiled again")
	}
}

func TestPath(t *testing.T) { // TP-13
	values := map[string]any{"a": map[string]any{"b": []any{"x", []any{"y", map[string]any{"c": int64(1)}}}}, "n": int64(1)}
	for text, want := range map[string]any{
		"n": int64(1), "a.b[0]": "x", "a.b[1][0]": "y", "a.b[1][1].c": int64(1), "a.b[9]": nil, "x": nil, "a.x": nil,
		"n.x": "n is not an object, n.x cannot be read from it", "a[0]": "a is not an array, a[0] cannot be read from it",
		"a.b.c": "a.b is not an object, a.b.c cannot be read from it", "a.b[1].c": "a.b[1] is not an object, a.b[1].c cannot be read from it",
	} {
		path, err := ParsePath(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, found, err := path.Find(values)
		if err != nil {
			got = err.Error()
		}
		if !cmp.Equal(got, want) || found != (want != nil && err == nil) {
			t.Errorf("%s is %v (%t), want %v", text, got, found, want)
		}
	}
	for _, text := range []string{"", ".", "a.", "a..b", "[0]", "a[", "a[x]", "a[-1]", "a[0]b", "a[99999999999]", "a[]"} {
		if path, err := ParsePath(text); err == nil {
			t.Errorf("%q is read as %v", text, path.parts)
		}
	}
}

func TestValues(t *testing.T) { // TP-17
	base := FromTopology(read[[]clusterv1.ClusterVariable](t, `[{name: a, value: 1}, {name: b, value: {x: 1}}]`))
	over := base.Overlay(read[[]clusterv1.ClusterVariable](t, `[{name: b, value: {why: 2}}, {name: c, value: z}]`))
	got, err := over.Decode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"a": int64(1), "b": map[string]any{"why": int64(2)}, "c": "z"}, got); diff != "" {
		t.Errorf("an override replaces the whole value (-want +got)\n%s", diff)
	}
	if len(base) != 2 || string(base["b"].Raw) != `{"x":1}` {
		t.Errorf("the values that were overlaid changed: %v", base)
	}
	if _, err := (Values{"a": apiextensionsv1.JSON{Raw: []byte("{")}}).Decode(); err == nil {
		t.Error("a value that is no JSON is decoded")
	}
}

func TestBuiltins(t *testing.T) { // TP-16, TM-06
	cluster := read[clusterv1.Cluster](t, `{metadata: {name: c, namespace: ns, uid: u, labels: {l: v}, annotations: {a: b, kubectl.kubernetes.io/last-applied-configuration: x}}, `+
		`spec: {clusterNetwork: {serviceDomain: d, services: {cidrBlocks: [10.0.0.0/8]}, pods: {cidrBlocks: [11.0.0.0/8]}}, topology: {version: v1.36.3, classRef: {name: cc}}}}`)
	meta := clusterv1.ObjectMeta{Labels: map[string]string{"x": "y"}}
	workers := Workers{Name: "w", TopologyName: "t", Class: "k", Version: "v1.35.4", Replicas: new(int32(2)), Metadata: meta, Bootstrap: "boot", Infrastructure: "infra"}
	for name, c := range map[string]struct {
		builtins runtimehooksv1.Builtins
		want     string
	}{
		"cluster": {ClusterBuiltins(&cluster), `{cluster: {name: c, namespace: ns, uid: u, metadata: {labels: {l: v}, annotations: {a: b}}, ` +
			`topology: {version: v1.36.3, classRef: {name: cc, namespace: ns}, class: cc, classNamespace: ns}, network: {serviceDomain: d, services: [10.0.0.0/8], pods: [11.0.0.0/8]}}}`},
		"class elsewhere": {ClusterBuiltins(new(read[clusterv1.Cluster](t, `{metadata: {name: c}, spec: {topology: {classRef: {name: cc, namespace: o}}}}`))),
			`{cluster: {name: c, topology: {classRef: {name: cc, namespace: o}, class: cc, classNamespace: o}}}`},
		"control plane":        {ControlPlane{Name: "p", Version: "v1.36.3", Replicas: new(int32(3)), InfrastructureTemplate: "m"}.Builtins(), `{controlPlane: {name: p, version: v1.36.3, replicas: 3, machineTemplate: {infrastructureRef: {name: m}}}}`},
		"hosted":               {ControlPlane{Name: "p", Version: "v1.36.3", Metadata: meta}.Builtins(), `{controlPlane: {name: p, version: v1.36.3, metadata: {labels: {x: "y"}}}}`},
		"deployment":           {workers.DeploymentBuiltins(), `{machineDeployment: {name: w, topologyName: t, class: k, version: v1.35.4, replicas: 2, metadata: {labels: {x: "y"}}, bootstrap: {configRef: {name: boot}}, infrastructureRef: {name: infra}}}`},
		"pool":                 {workers.PoolBuiltins(), `{machinePool: {name: w, topologyName: t, class: k, version: v1.35.4, replicas: 2, metadata: {labels: {x: "y"}}, bootstrap: {configRef: {name: boot}}, infrastructureRef: {name: infra}}}`},
		"nothing is known yet": {Workers{TopologyName: "t"}.PoolBuiltins(), `{machinePool: {topologyName: t}}`},
	} {
		t.Run(name, func(t *testing.T) {
			values, err := Values{}.WithBuiltins(c.builtins)
			if err != nil {
				t.Fatal(err)
			}
			got, err := values.Decode()
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(read[any](t, c.want))
			if err != nil {
				t.Fatal(err)
			}
			want, err := decode(apiextensionsv1.JSON{Raw: text})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got["builtin"]); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// BenchmarkValidate: 30 variables, each with a rule, compiled before.
func BenchmarkValidate(b *testing.B) {
	schemas, topology := map[string]string{}, &clusterv1.Topology{}
	for i := range 30 {
		name := fmt.Sprintf("v%02d", i)
		schemas[name] = `{type: object, properties: {size: {type: integer, default: 3}, name: {type: string, maxLength: 20}}, x-kubernetes-validations: [{rule: self.size < 100}]}`
		topology.Variables = append(topology.Variables, clusterv1.ClusterVariable{Name: name, Value: apiextensionsv1.JSON{Raw: []byte(`{"size":5,"name":"x"}`)}})
	}
	definitions := definitionsOf(b, schemas)
	for b.Loop() {
		if definitions.Default(topology) {
			b.Fatal("changed")
		}
		if errs := definitions.Validate(topology, nil, nil); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}

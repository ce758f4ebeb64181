package topology

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// Variables are the variables for one template: the variables of the cluster, overridden by the template's own. They
// are immutable.
type Variables struct {
	values map[string]json.RawMessage
}

// NewVariables merges lists of variables; later ones take precedence. The variable "builtin", of which each list has
// only a part, is merged field by field.
func NewVariables(lists ...[]hooksv1.Variable) (Variables, error) {
	values := map[string]json.RawMessage{}
	for _, list := range lists {
		for _, v := range list {
			value := json.RawMessage(v.Value.Raw)
			if v.Name == hooksv1.BuiltinsName && values[v.Name] != nil {
				merged, err := merge(values[v.Name], value)
				if err != nil {
					return Variables{}, &InvalidError{Path: v.Name, Cause: err}
				}
				value = merged
			}
			values[v.Name] = value
		}
	}
	return Variables{values}, nil
}

func merge(a, b json.RawMessage) (json.RawMessage, error) {
	var under, over map[string]any
	if err := errors.Join(decode(a, &under), decode(b, &over)); err != nil {
		return nil, err
	}
	return json.Marshal(overlay(under, over))
}

func overlay(under, over map[string]any) map[string]any {
	out := maps.Clone(under)
	for k, v := range over {
		lower, ok := out[k].(map[string]any)
		upper, ok2 := v.(map[string]any)
		if ok && ok2 {
			out[k] = overlay(lower, upper)
		} else {
			out[k] = v
		}
	}
	return out
}

// decode preserves the representation of numbers, because float64 cannot represent large integers.
func decode(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(into)
}

// Names returns the names of the variables with a value, sorted.
func (v Variables) Names() []string { return slices.Sorted(maps.Keys(v.values)) }

// Lookup returns the JSON value of a variable or of a field in it. The path is the name of a variable, followed by
// fields after dots and list indexes in brackets, as in "network.dns.servers[0]" or
// "builtin.machineDeployment.version". A field name with a dot is written in brackets and quotes:
// labels["topology.io/zone"]. The error is a [NotFoundError] if there is no value or null, and an [InvalidError] if the
// path does not match the value.
func (v Variables) Lookup(path string) (json.RawMessage, error) {
	steps, err := parse(path)
	if err != nil {
		return nil, &InvalidError{Path: path, Cause: err}
	}
	value, ok := v.values[steps[0].field]
	if !ok {
		return nil, &NotFoundError{Path: path, Missing: steps[0].field}
	}
	for i, s := range steps[1:] {
		value, err = s.into(value)
		if err != nil {
			return nil, &InvalidError{Path: path, Cause: err}
		}
		if value == nil {
			return nil, &NotFoundError{Path: path, Missing: text(steps[:i+2])}
		}
	}
	if bytes.Equal(bytes.TrimSpace(value), []byte("null")) {
		return nil, &NotFoundError{Path: path, Missing: path}
	}
	return value, nil
}

// Get returns a variable, or a field in it, as a T: a string, a number, a bool, or a struct with JSON names. It returns
// the errors of [Variables.Lookup], and an [InvalidError] if the value is not a T.
func Get[T any](v Variables, path string) (T, error) {
	var out T
	raw, err := v.Lookup(path)
	if err != nil {
		return out, err
	}
	return out, unmarshal(raw, path, &out)
}

func unmarshal(raw json.RawMessage, path string, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return &InvalidError{Path: path, Cause: fmt.Errorf("it is not a %s: %w", reflect.TypeOf(into).Elem(), err)}
	}
	return nil
}

// GetOr is [Get] with a default value.
func GetOr[T any](v Variables, path string, otherwise T) (T, error) {
	out, err := Get[T](v, path)
	if IsNotFound(err) {
		return otherwise, nil
	}
	return out, err
}

// Builtins returns the variable "builtin", which describes the cluster and the use of the template; empty if it does
// not exist.
func (v Variables) Builtins() (hooksv1.Builtins, error) {
	return GetOr(v, hooksv1.BuiltinsName, hooksv1.Builtins{})
}

// step is one step of a path: a field of an object, or an element of a list.
type step struct {
	field string
	index int // -1 for a field
}

func (s step) into(value json.RawMessage) (json.RawMessage, error) {
	if s.index < 0 {
		var object map[string]json.RawMessage
		if err := json.Unmarshal(value, &object); err != nil {
			return nil, fmt.Errorf("%q is read from a value that is not an object", s.field)
		}
		return object[s.field], nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(value, &list); err != nil {
		return nil, fmt.Errorf("element %d is read from a value that is not a list", s.index)
	}
	if s.index >= len(list) {
		return nil, nil
	}
	return list[s.index], nil
}

func text(steps []step) string {
	var b strings.Builder
	for i, s := range steps {
		switch {
		case s.index >= 0:
			fmt.Fprintf(&b, "[%d]", s.index)
		case strings.Contains(s.field, "."):
			fmt.Fprintf(&b, "[%q]", s.field)
		case i == 0:
			b.WriteString(s.field)
		default:
			b.WriteString("." + s.field)
		}
	}
	return b.String()
}

// parse parses a path: a name, followed by any number of .field, ["field"] or [0].
func parse(path string) ([]step, error) {
	rest, steps := "."+path, []step(nil)
	for rest != "" {
		s, after, err := first(rest)
		if err != nil {
			return nil, fmt.Errorf("%w at %q", err, rest)
		}
		steps, rest = append(steps, s), after
	}
	return steps, nil
}

func first(rest string) (step, string, error) {
	if rest[0] == '.' {
		end := strings.IndexAny(rest[1:], ".[")
		if end < 0 {
			end = len(rest) - 1
		}
		if end == 0 {
			return step{}, "", errors.New("a name is missing in the path")
		}
		return step{rest[1 : end+1], -1}, rest[end+1:], nil
	}
	if quoted, err := strconv.QuotedPrefix(strings.TrimPrefix(rest, "[")); err == nil && rest[0] == '[' {
		name, _ := strconv.Unquote(quoted)
		after, ok := strings.CutPrefix(rest[1+len(quoted):], "]")
		if !ok {
			return step{}, "", errors.New("a bracket is not closed in the path")
		}
		return step{name, -1}, after, nil
	}
	inside, after, ok := strings.Cut(strings.TrimPrefix(rest, "["), "]")
	index, err := strconv.Atoi(inside)
	if rest[0] != '[' || !ok || err != nil || index < 0 {
		return step{}, "", errors.New("the path is not name.field[0][\"field\"]")
	}
	return step{index: index}, after, nil
}

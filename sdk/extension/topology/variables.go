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

// Variables are the variables that hold for one template: those of the cluster, with those of the template in front.
// They never change once they are made.
type Variables struct {
	values map[string]json.RawMessage
}

// NewVariables puts lists of variables together, later ones in front. Of the variable "builtin" each list has a part
// only, which are put together field by field.
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

// decode keeps numbers as they are written: a large integer is no float.
func decode(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(into)
}

// Names lists the variables that have a value, sorted.
func (v Variables) Names() []string { return slices.Sorted(maps.Keys(v.values)) }

// Lookup returns the JSON of a variable or a field of it: the path is the name of a variable, then fields after dots
// and positions in lists in brackets, as in "network.dns.servers[0]" or "builtin.machineDeployment.version". A field
// whose name has a dot is written in brackets with quotes: labels["topology.io/zone"]. The error is a [NotFoundError]
// where there is no value or null, an [InvalidError] where the path does not fit the value.
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

// Get returns a variable, or a field of it, as a T: a string, a number, a bool, or a struct with JSON names. The errors
// are those of [Variables.Lookup], and an [InvalidError] where the value is no T.
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

// GetOr is [Get] with a value for where there is none.
func GetOr[T any](v Variables, path string, otherwise T) (T, error) {
	out, err := Get[T](v, path)
	if IsNotFound(err) {
		return otherwise, nil
	}
	return out, err
}

// Builtins returns the variable "builtin", which tells about the cluster and what the template is used for; empty where
// there is none.
func (v Variables) Builtins() (hooksv1.Builtins, error) {
	return GetOr(v, hooksv1.BuiltinsName, hooksv1.Builtins{})
}

// step goes from a value to one in it: a field of an object, or an element of a list.
type step struct {
	field string
	index int // -1: a field
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

// parse reads a path: a name, then .field, ["field"] or [0] any number of times.
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

package variables

import (
	"fmt"
	"strconv"
	"strings"
)

// Path refers to a variable, or a part of its value: name.field[0].field. Patches have such paths in
// valueFrom.variable, in the syntax of Cluster API. Package patch reads values with it.
type Path struct {
	text  string
	parts []part
}

// part is a field of an object, or an index of an array if field is empty.
type part struct {
	field string
	index int
}

// ParsePath parses a path of a patch, for package patch and the webhook of ClusterClasses.
func ParsePath(text string) (Path, error) {
	p := Path{text: text}
	for _, segment := range strings.Split(text, ".") {
		field, rest, indexed := strings.Cut(segment, "[")
		if field == "" {
			return Path{}, fmt.Errorf("%q is not the path of a variable: a name is empty", text)
		}
		p.parts = append(p.parts, part{field: field})
		for indexed {
			digits, after, closed := strings.Cut(rest, "]")
			index, err := strconv.ParseUint(digits, 10, 31)
			if !closed || err != nil {
				return Path{}, fmt.Errorf("%q is not the path of a variable: an index is not a whole number in brackets, for example [0]", text)
			}
			p.parts = append(p.parts, part{index: int(index)})
			if after == "" {
				break
			}
			if rest, indexed = strings.CutPrefix(after, "["); !indexed {
				return Path{}, fmt.Errorf("%q is not the path of a variable: a dot is missing after ]", text)
			}
		}
	}
	return p, nil
}

// Variable returns the name of the variable.
func (p Path) Variable() string { return p.parts[0].field }

// Fields returns the names in the path up to the first index, starting with the variable.
func (p Path) Fields() []string {
	var out []string
	for _, part := range p.parts {
		if part.field == "" {
			break
		}
		out = append(out, part.field)
	}
	return out
}

// String returns the path as it was written.
func (p Path) String() string { return p.text }

// Find returns the value at the path, or false if there is none. It returns an error if a value along the path has the
// wrong type. Package patch calls it for each change with valueFrom.variable.
func (p Path) Find(values map[string]any) (any, bool, error) {
	var at any = values
	for i, step := range p.parts {
		switch {
		case step.field != "":
			object, ok := at.(map[string]any)
			if !ok {
				return nil, false, fmt.Errorf("%s is not an object, %s cannot be read from it", p.upTo(i), p.text)
			}
			if at, ok = object[step.field]; !ok {
				return nil, false, nil
			}
		default:
			array, ok := at.([]any)
			if !ok {
				return nil, false, fmt.Errorf("%s is not an array, %s cannot be read from it", p.upTo(i), p.text)
			}
			if step.index >= len(array) {
				return nil, false, nil
			}
			at = array[step.index]
		}
	}
	return at, true, nil
}

// upTo returns the text of the first n parts.
func (p Path) upTo(n int) string {
	var b strings.Builder
	for i, step := range p.parts[:n] {
		switch {
		case step.field == "":
			fmt.Fprintf(&b, "[%d]", step.index)
		case i > 0:
			b.WriteString("." + step.field)
		default:
			b.WriteString(step.field)
		}
	}
	return b.String()
}

package repository

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/drone/envsubst/v2"
	"github.com/drone/envsubst/v2/parse"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Reasons of faults.
const (
	// reasonTemplate is the reason when a template cannot be parsed; Invalid.
	reasonTemplate = "InvalidTemplate"
	// reasonMissing is the reason when variables have no value; Invalid.
	reasonMissing = "MissingVariables"
)

// Variable is a variable of a template.
type Variable struct {
	Name string `json:"name"`
	// Default is the default value as written in the template; nil if a value is required.
	Default *string `json:"default,omitempty"`
}

// Lookup returns the value of a variable.
type Lookup func(name string) (value string, ok bool)

// Processor renders templates as manifests. The commands use [Envsubst]; programs may provide another.
type Processor interface {
	// Variables returns the variables of a template, sorted by name.
	Variables(template []byte) ([]Variable, error)
	// Process returns the template with its variables replaced.
	Process(template []byte, lookup Lookup) ([]byte, error)
}

// Envsubst processes templates with variables such as ${VAR}, in the syntax of clusterctl, which existing templates of
// providers rely on.
type Envsubst struct{}

var spaces = regexp.MustCompile(`\$\{\s*([A-Za-z0-9_$]+)\s*\}`)

// normalize removes spaces within the braces, which envsubst does not accept.
func normalize(template []byte) string { return spaces.ReplaceAllString(string(template), "$${$1}") }

// Variables implements Processor.
func (Envsubst) Variables(template []byte) ([]Variable, error) {
	text := normalize(template)
	tree, err := parse.Parse(text)
	if err != nil {
		return nil, invalidTemplateError(text, err)
	}
	var out []Variable
	variables(tree.Root, &out)
	slices.SortFunc(out, func(a, b Variable) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// variables appends the variables of a node that are not in the list yet.
func variables(n parse.Node, to *[]Variable) {
	switch n := n.(type) {
	case *parse.ListNode:
		for _, one := range n.Nodes {
			variables(one, to)
		}
	case *parse.FuncNode:
		if !slices.ContainsFunc(*to, func(v Variable) bool { return v.Name == n.Param }) {
			*to = append(*to, Variable{n.Param, defaultOf(n)})
		}
	}
}

// defaultOf returns the default in a reference to a variable. A function that changes the value counts as a default,
// with the empty string as the value, because existing clusterctl templates rely on it.
func defaultOf(n *parse.FuncNode) *string {
	var b strings.Builder
	for _, a := range n.Args {
		switch a := a.(type) {
		case *parse.FuncNode:
			fmt.Fprintf(&b, "${%s}", a.Param)
		case *parse.TextNode:
			b.WriteString(a.Value)
		}
	}
	out := b.String()
	if out == "" && !slices.Contains([]string{":-", ":=", "="}, n.Name) {
		return nil
	}
	return &out
}

// Process implements Processor.
func (e Envsubst) Process(template []byte, lookup Lookup) (out []byte, err error) {
	all, err := e.Variables(template)
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, v := range all {
		if _, ok := lookup(v.Name); !ok && v.Default == nil {
			missing = append(missing, v.Name)
		}
	}
	if len(missing) > 0 {
		return nil, fault.New(fault.Invalid, reasonMissing, "no value is set for: %s; set these variables in the environment or in the configuration file", strings.Join(missing, ", "))
	}
	text := normalize(template)
	defer func() {
		if recover() != nil { // a substring that does not exist, for example one with a negative length
			out, err = nil, fault.New(fault.Invalid, reasonTemplate, "the template refers to a substring of a variable that its value does not have; correct the value or the template")
		}
	}()
	result, err := envsubst.Eval(text, func(name string) string {
		value, _ := lookup(name)
		return value
	})
	if err != nil {
		return nil, invalidTemplateError(text, err)
	}
	return []byte(result), nil
}

// invalidTemplateError returns the fault for a template that cannot be parsed, with the first line that cannot be
// parsed on its own.
func invalidTemplateError(text string, err error) error {
	where := "the template"
	for i, line := range strings.Split(text, "\n") {
		if _, err := parse.Parse(line); err != nil {
			where = fmt.Sprintf("line %d of the template", i+1)
			break
		}
	}
	return fault.New(fault.Invalid, reasonTemplate, "%s contains an invalid variable (%v); write it as ${NAME} or ${NAME:=default}, and $$ for a dollar sign before a brace", where, err).From(err)
}

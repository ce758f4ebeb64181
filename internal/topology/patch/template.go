package patch

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// maxRendered is the maximum output of a template, in bytes, our choice.
const maxRendered = 256 << 10

// valueTemplate is the template of a patch in a ClusterClass (valueFrom.template or enabledIf), whose output is a value
// in YAML or JSON. [Compile] parses it, and [Program.Apply] evaluates it.
type valueTemplate struct {
	reads   reads
	mutates bool // uses functions that modify their arguments

	mu     sync.Mutex // the functions of a template share its meter
	parsed *template.Template
	meter  *meter
}

// rendered is the result of a template. [Program.Apply] caches it, and evaluates a template once for all items for
// which it cannot differ.
type rendered struct {
	value any
	unset bool // the output contains a missing value
}

// parseTemplate parses a template, and replaces its functions by metered ones. [Compile] calls it once for each
// template of a class.
func parseTemplate(text string, functions functions) (*valueTemplate, error) {
	meter := &meter{}
	parsed, err := template.New("value").Funcs(template.FuncMap(functions)).Funcs(meter.ticks()).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("the template cannot be read: %w", err)
	}
	t := &valueTemplate{parsed: parsed, meter: meter}
	used := map[string]bool{}
	for _, named := range parsed.Templates() {
		if named.Tree == nil || named.Root == nil {
			continue
		}
		w := walker{reads: &t.reads, used: used, dotChanged: named != parsed, nested: named != parsed}
		w.list(named.Root)
		instrument(named.Root)
	}
	wrapped := template.FuncMap{}
	for name := range used {
		if f, known := functions[name]; known {
			wrapped[name] = meter.wrap(name, f)
		}
		t.mutates = t.mutates || isMutating(name)
	}
	parsed.Funcs(wrapped)
	return t, nil
}

// valueOf parses the output of a template as JSON or YAML. [Program.Apply] calls it.
func valueOf(text string) (rendered, error) {
	raw := []byte(text)
	if !json.Valid(raw) {
		var err error
		if raw, err = yaml.YAMLToJSON(raw); err != nil {
			return rendered{}, fmt.Errorf("the template does not print YAML or JSON: %w", err)
		}
	}
	out := rendered{unset: strings.Contains(text, "<no value>")}
	if err := utiljson.Unmarshal(raw, &out.value); err != nil {
		return rendered{}, fmt.Errorf("the template does not print YAML or JSON: %w", err)
	}
	return out, nil
}

// print evaluates the template. [Program.Apply] calls it in each reconciliation, so its result must depend on the
// values only.
func (t *valueTemplate) print(values map[string]any) (string, error) {
	if t.mutates {
		values = runtime.DeepCopyJSON(values)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.meter.left = maxWork
	var out strings.Builder
	if err := t.parsed.Execute(&limited{&out}, values); err != nil {
		return "", fmt.Errorf("the template cannot be evaluated: %w", err)
	}
	return out.String(), nil
}

// limited stops a template whose output is too large.
type limited struct{ to *strings.Builder }

func (l *limited) Write(p []byte) (int, error) {
	if l.to.Len()+len(p) > maxRendered {
		return 0, fmt.Errorf("more than %d bytes are printed", maxRendered)
	}
	return l.to.Write(p)
}

// reads holds the variables that a template reads, as far as this can be determined from its text.
type reads struct {
	names    []string
	builtins []string // parts of the builtin variable
	all      bool     // cannot be determined statically
	// variables holds the variables that are read from the root; names may also include fields of another value.
	variables []string
}

// differs reports whether the template may read a variable that is specific to an item. [Program.Apply] calls it to
// evaluate other templates only once.
func (r reads) differs(s scope) bool {
	if r.all {
		return true
	}
	for _, name := range r.names {
		if _, own := s.own[name]; own && name != builtin {
			return true
		}
	}
	for _, part := range r.builtins {
		if _, own := s.ownBuiltins[part]; own {
			return true
		}
	}
	return false
}

func (r *reads) field(names []string) {
	r.names = append(r.names, names[0])
	switch {
	case names[0] != builtin:
	case len(names) == 1:
		r.all = true
	default:
		r.builtins = append(r.builtins, names[1])
	}
}

// walker collects what the nodes of a template read, and the functions that they use.
type walker struct {
	reads      *reads
	used       map[string]bool
	dotChanged bool // the dot is not the root
	nested     bool // in a nested template, where $ is its argument
}

func (w walker) list(nodes *parse.ListNode) {
	if nodes == nil {
		return
	}
	for _, node := range nodes.Nodes {
		w.node(node)
	}
}

func (w walker) node(node parse.Node) {
	switch n := node.(type) {
	case *parse.ActionNode:
		w.pipe(n.Pipe)
	case *parse.IfNode:
		w.branch(&n.BranchNode)
	case *parse.RangeNode:
		w.moving(&n.BranchNode)
	case *parse.WithNode:
		w.moving(&n.BranchNode)
	case *parse.TemplateNode:
		w.pipe(n.Pipe)
	case *parse.PipeNode:
		w.pipe(n)
	case *parse.ChainNode:
		w.node(n.Node)
	case *parse.FieldNode:
		w.reads.field(n.Ident)
		if !w.dotChanged {
			w.reads.variables = append(w.reads.variables, n.Ident[0])
		}
	case *parse.VariableNode:
		if n.Ident[0] == "$" && len(n.Ident) > 1 {
			w.reads.field(n.Ident[1:])
			if !w.nested {
				w.reads.variables = append(w.reads.variables, n.Ident[1])
			}
		} else if n.Ident[0] == "$" {
			w.reads.all = true
		}
	case *parse.DotNode:
		w.reads.all = true
	case *parse.IdentifierNode:
		w.used[n.Ident] = true
	}
}

func (w walker) branch(n *parse.BranchNode) {
	w.pipe(n.Pipe)
	w.list(n.List)
	w.list(n.ElseList)
}

// moving visits a branch in which the dot is the value of the pipe.
func (w walker) moving(n *parse.BranchNode) {
	w.pipe(n.Pipe)
	w.list(n.ElseList)
	w.dotChanged = true
	w.list(n.List)
}

func (w walker) pipe(pipe *parse.PipeNode) {
	if pipe == nil {
		return
	}
	for _, command := range pipe.Cmds {
		for _, argument := range command.Args {
			w.node(argument)
		}
	}
}

// CheckTemplate returns an error if a text is not a valid template for a value or enabledIf. The webhook of
// ClusterClasses calls it.
func CheckTemplate(text string) error {
	_, err := parseTemplate(text, templateFunctions())
	return err
}

// Variables returns the names of the variables that a template reads, sorted; none if the template is invalid. The
// webhook of ClusterClasses names them in its messages.
func Variables(text string) []string {
	t, err := parseTemplate(text, templateFunctions())
	if err != nil {
		return nil
	}
	names := slices.Clone(t.reads.variables)
	slices.Sort(names)
	return slices.Compact(names)
}

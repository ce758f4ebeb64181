package patch

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"text/template"
	"text/template/parse"

	"github.com/Masterminds/sprig/v3"
)

// functions holds template functions by name. [Compile] passes them to parseTemplate, which meters them.
type functions map[string]any

// excluded returns sprig functions that depend on the time or on randomness, or that are slow by design. A template
// must have the same result in each reconciliation, so such functions of a new version of sprig have to be added.
func excluded() []string {
	return []string{
		"ago", "toDate", "mustToDate", "must_date_modify", "mustDateModify", "unixEpoch",
		"randInt", "shuffle", "encryptAES", "bcrypt", "htpasswd", "derivePassword",
		"genPrivateKey", "buildCustomCert", "genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey",
		"genSignedCert", "genSignedCertWithKey",
	}
}

// templateFunctions returns the functions for the templates in patches of a ClusterClass: sprig's functions, which
// Cluster API documents, without the excluded ones. They are deterministic, and a meter limits their cost. [Compile]
// and [CheckTemplate] parse templates with them.
func templateFunctions() functions {
	out := functions(sprig.HermeticTxtFuncMap())
	for _, name := range excluded() {
		delete(out, name)
	}
	out["keys"], out["values"] = sortedKeys, valuesByKey
	out["print"], out["println"], out["printf"] = fmt.Sprint, fmt.Sprintln, printf
	out["html"], out["js"], out["urlquery"] = template.HTMLEscaper, template.JSEscaper, template.URLQueryEscaper
	return out
}

// sortedKeys returns the keys of objects, sorted. It replaces the sprig function, whose order is random.
func sortedKeys(objects ...map[string]any) []string {
	var out []string
	for _, object := range objects {
		out = append(out, slices.Sorted(maps.Keys(object))...)
	}
	return out
}

// valuesByKey returns the values of an object in the order of its sorted keys.
func valuesByKey(object map[string]any) []any {
	out := make([]any, 0, len(object))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		out = append(out, object[key])
	}
	return out
}

// printf is fmt.Sprintf with a limit on the field width, which would allow large outputs from small inputs.
func printf(format string, args ...any) (string, error) {
	wide, err := regexp.MatchString(`%[^a-zA-Z%]*(\d{4}|\*)`, format)
	if err != nil || wide {
		return "", fmt.Errorf("printf: a width has more than three digits or is an argument")
	}
	return fmt.Sprintf(format, args...), nil
}

// isMutating reports whether a function modifies its arguments. The values of a template with such a function are
// copied before each evaluation.
func isMutating(name string) bool {
	switch name {
	case "set", "unset", "merge", "mergeOverwrite", "mustMerge", "mustMergeOverwrite":
		return true
	}
	return false
}

// growth is how the cost of a function grows with its arguments.
type growth int

const (
	bySize    growth = iota // with their size
	byNumber                // with the numbers among them
	byProduct               // with the product of size and numbers
	bySquare                // with the square of their size
)

// growthOf returns how the cost of a function grows. A function that is missing here costs the size of its arguments
// and its result.
func growthOf(name string) growth {
	switch name {
	case "until", "untilStep", "seq":
		return byNumber
	case "uniq", "mustUniq":
		return bySquare
	case "repeat", "indent", "nindent", "replace", "join", "wrap", "wrapWith", "without", "mustWithout",
		"regexMatch", "mustRegexMatch", "regexFindAll", "mustRegexFindAll", "regexFind", "mustRegexFind", "regexReplaceAll",
		"mustRegexReplaceAll", "regexReplaceAllLiteral", "mustRegexReplaceAllLiteral", "regexSplit", "mustRegexSplit":
		return byProduct
	}
	return bySize
}

const (
	// maxWork is the maximum cost of one evaluation of a template: a unit is about a byte, or an item of a list, that a
	// function reads or creates.
	maxWork = 2 << 20
	// maxDepth is the maximum nesting of values: deeper values contain themselves, or are crafted to use memory.
	maxDepth = 100
	// Costs of one iteration of a loop, and of one execution of a named template.
	turnCost, nestedCost = 10, 1000

	turnFunction, nestedFunction = "slipwayTurn", "slipwayNested"
)

// meter tracks the remaining work of one evaluation of a template, because the author of a ClusterClass must not be
// able to stop the manager with a template that takes forever or fills the memory.
type meter struct{ left int }

func (m *meter) spend(units int) error {
	if units > m.left {
		m.left = 0
		return fmt.Errorf("the template exceeds its computation limit: it loops too often or creates values that are too large")
	}
	m.left -= units
	return nil
}

// ticks returns the functions that instrument inserts into templates. parseTemplate calls it together with
// [instrument].
func (m *meter) ticks() template.FuncMap {
	return template.FuncMap{
		turnFunction:   func() (string, error) { return "", m.spend(turnCost) },
		nestedFunction: func() (string, error) { return "", m.spend(nestedCost) },
	}
}

// instrument makes each iteration of a loop and each execution of the template count as work, because neither requires
// a metered function. parseTemplate calls it.
func instrument(root *parse.ListNode) {
	inLoops(root)
	prepend(root, nestedFunction)
}

// inLoops makes each iteration of the loops in a list count as work.
func inLoops(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.RangeNode:
			inLoops(n.List)
			inLoops(n.ElseList)
			prepend(n.List, turnFunction)
		case *parse.IfNode:
			inLoops(n.List)
			inLoops(n.ElseList)
		case *parse.WithNode:
			inLoops(n.List)
			inLoops(n.ElseList)
		}
	}
}

// prepend inserts a function call before the nodes of a list.
func prepend(list *parse.ListNode, function string) {
	call := &parse.CommandNode{NodeType: parse.NodeCommand, Pos: list.Pos, Args: []parse.Node{parse.NewIdentifier(function).SetPos(list.Pos)}}
	pipe := &parse.PipeNode{NodeType: parse.NodePipe, Pos: list.Pos, Cmds: []*parse.CommandNode{call}}
	list.Nodes = append([]parse.Node{&parse.ActionNode{NodeType: parse.NodeAction, Pos: list.Pos, Pipe: pipe}}, list.Nodes...)
}

// wrap returns a function that charges for its arguments before the call, and for its result after it. parseTemplate
// calls it for each function.
func (m *meter) wrap(name string, f any) any {
	fn := reflect.ValueOf(f)
	t := fn.Type()
	in := make([]reflect.Type, t.NumIn())
	for i := range in {
		in[i] = t.In(i)
	}
	failure := reflect.TypeFor[error]()
	refuse := func(err error) []reflect.Value {
		return []reflect.Value{reflect.Zero(t.Out(0)), reflect.ValueOf(&err).Elem()}
	}
	metered := func(args []reflect.Value) []reflect.Value {
		if err := m.spend(m.price(name, args)); err != nil {
			return refuse(err)
		}
		call := fn.Call
		if t.IsVariadic() {
			call = fn.CallSlice
		}
		results := call(args)
		if len(results) == 2 && !results[1].IsNil() {
			return results
		}
		if err := m.spend(m.size(results[0])); err != nil {
			return refuse(err)
		}
		return []reflect.Value{results[0], reflect.Zero(failure)}
	}
	return reflect.MakeFunc(reflect.FuncOf(in, []reflect.Type{t.Out(0), failure}, t.IsVariadic()), metered).Interface()
}

// price returns the cost of a call.
func (m *meter) price(name string, args []reflect.Value) int {
	size, number, product := 1, 1, 1
	for _, arg := range args {
		s, n := m.size(arg), magnitude(arg)
		size, number, product = size+s, number+n, times(product, max(s, n, 1))
	}
	switch growthOf(name) {
	case byNumber:
		return size + number
	case byProduct:
		return max(size, product)
	case bySquare:
		return times(size, size)
	}
	return size
}

// times returns a product, capped above the limit of any evaluation.
func times(a, b int) int {
	if a > maxWork || b > maxWork || a*b > maxWork {
		return maxWork + 1
	}
	return a * b
}

// magnitude returns the absolute value of a number, or the largest one in a list of arguments.
func magnitude(v reflect.Value) int {
	for v.IsValid() && v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch {
	case !v.IsValid():
		return 0
	case v.CanInt():
		return magnitudeOf(float64(v.Int()))
	case v.CanUint():
		return magnitudeOf(float64(v.Uint()))
	case v.CanFloat():
		return magnitudeOf(v.Float())
	case v.Kind() == reflect.Slice:
		most := 0
		for i := range v.Len() {
			if item := v.Index(i); item.Kind() != reflect.Slice && !(item.Kind() == reflect.Interface && item.Elem().Kind() == reflect.Slice) {
				most = max(most, magnitude(item))
			}
		}
		return most
	}
	return 0
}

func magnitudeOf(n float64) int { return int(min(math.Abs(n), math.MaxInt32)) }

// size returns the size of a value: bytes of strings and items of lists and objects, recursively, up to the remaining
// work.
func (m *meter) size(v reflect.Value) int {
	total := 0
	var add func(v reflect.Value, depth int)
	add = func(v reflect.Value, depth int) {
		if total++; depth > maxDepth {
			total = m.left + 1
		}
		if total > m.left || !v.IsValid() {
			return
		}
		switch v.Kind() {
		case reflect.String:
			total += v.Len()
		case reflect.Interface, reflect.Pointer:
			add(v.Elem(), depth)
		case reflect.Slice, reflect.Array:
			for i := 0; i < v.Len() && total <= m.left; i++ {
				add(v.Index(i), depth+1)
			}
		case reflect.Map:
			for entries := v.MapRange(); total <= m.left && entries.Next(); {
				add(entries.Key(), depth+1)
				add(entries.Value(), depth+1)
			}
		}
	}
	add(v, 0)
	return total
}

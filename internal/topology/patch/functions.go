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

// functions of templates by name.
type functions map[string]any

// excluded are functions of sprig that depend on the time or on chance, or that take long by intention.
func excluded() []string {
	return []string{
		"ago", "toDate", "mustToDate", "must_date_modify", "mustDateModify", "unixEpoch",
		"randInt", "shuffle", "encryptAES", "bcrypt", "htpasswd", "derivePassword",
		"genPrivateKey", "buildCustomCert", "genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey",
		"genSignedCert", "genSignedCertWithKey",
	}
}

// templateFunctions are those that templates may use: the same input has the same output.
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

// sortedKeys are the keys of objects, sorted: sprig has them in any order.
func sortedKeys(objects ...map[string]any) []string {
	var out []string
	for _, object := range objects {
		out = append(out, slices.Sorted(maps.Keys(object))...)
	}
	return out
}

// valuesByKey are the values of an object in the order of its sorted keys.
func valuesByKey(object map[string]any) []any {
	out := make([]any, 0, len(object))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		out = append(out, object[key])
	}
	return out
}

// printf is fmt.Sprintf without widths that are longer than what they pad.
func printf(format string, args ...any) (string, error) {
	wide, err := regexp.MatchString(`%[^a-zA-Z%]*(\d{4}|\*)`, format)
	if err != nil || wide {
		return "", fmt.Errorf("printf: a width has more than three digits or is an argument")
	}
	return fmt.Sprintf(format, args...), nil
}

// isMutating reports whether a function changes what it is given.
func isMutating(name string) bool {
	switch name {
	case "set", "unset", "merge", "mergeOverwrite", "mustMerge", "mustMergeOverwrite":
		return true
	}
	return false
}

// growth is how the work of a function, and what it makes, grows with its arguments.
type growth int

const (
	bySize    growth = iota // with their size
	byNumber                // with the numbers among them
	byProduct               // with the product of size and numbers
	bySquare                // with the square of their size
)

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
	// maxWork is what one evaluation of a template may cost: a unit is about a byte, or an item of a list, that a function reads
	// or makes.
	maxWork = 2 << 20
	// maxDepth is how deep values may be nested: deeper ones contain themselves, or are made to take memory.
	maxDepth = 100
	// costs of one more turn of a loop, and of using a named template.
	turnCost, nestedCost = 10, 1000

	turnFunction, nestedFunction = "slipwayTurn", "slipwayNested"
)

// meter counts the work of one evaluation.
type meter struct{ left int }

func (m *meter) spend(units int) error {
	if units > m.left {
		m.left = 0
		return fmt.Errorf("the template takes too much work: it loops too often or makes values that are too large")
	}
	m.left -= units
	return nil
}

// ticks are the functions that instrument puts into templates.
func (m *meter) ticks() template.FuncMap {
	return template.FuncMap{
		turnFunction:   func() (string, error) { return "", m.spend(turnCost) },
		nestedFunction: func() (string, error) { return "", m.spend(nestedCost) },
	}
}

// instrument has each turn of a loop and each use of the template counted: neither needs a function that is counted.
func instrument(root *parse.ListNode) {
	inLoops(root)
	prepend(root, nestedFunction)
}

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

// prepend puts the call of a function before the nodes of a list.
func prepend(list *parse.ListNode, function string) {
	call := &parse.CommandNode{NodeType: parse.NodeCommand, Pos: list.Pos, Args: []parse.Node{parse.NewIdentifier(function).SetPos(list.Pos)}}
	pipe := &parse.PipeNode{NodeType: parse.NodePipe, Pos: list.Pos, Cmds: []*parse.CommandNode{call}}
	list.Nodes = append([]parse.Node{&parse.ActionNode{NodeType: parse.NodeAction, Pos: list.Pos, Pipe: pipe}}, list.Nodes...)
}

// wrap returns a function that pays for its arguments before, and for its result after the call.
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

// price is what a call costs.
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

// times is a product, or a number that no evaluation can pay.
func times(a, b int) int {
	if a > maxWork || b > maxWork || a*b > maxWork {
		return maxWork + 1
	}
	return a * b
}

// magnitude of a number, or the highest of numbers in a list of arguments.
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

// size of a value: bytes of strings and items of lists and objects, those inside included, up to what is left to spend.
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

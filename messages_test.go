package slipway

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// message is a text for users in a condition, wait, event or error.
type message struct{ pkg, what, reason, text string }

// catalog collects the messages in production code, including messages that functions of this module return.
type catalog struct {
	packages  []*packages.Package
	functions map[string]located
	found     map[message]bool
}

// located is a function of this module with its package.
type located struct {
	in   *packages.Package
	decl *ast.FuncDecl
}

// sinks returns the functions whose arguments become messages, with the kind of the message.
func sinks() map[string]string {
	return map[string]string{
		module + "internal/condition.TrueBecause": "condition", module + "internal/condition.False": "condition",
		module + "internal/condition.Unknown": "condition", "(*" + module + "internal/reconciler.Plan).WaitFor": "wait",
		module + "internal/reconciler.Normal": "event", module + "internal/reconciler.Warning": "event",
		module + "internal/fault.New": "error",
	}
}

// privateWords matches words that messages must not contain, because users do not search for them.
var privateWords = regexp.MustCompile(`(?i)\b(nobody|somebody|whoever|anew|for ever|goes on|shall|tried again|again and again|bereft|sick|asked|told|looked at|carried by|taken away|made again)\b`)

// TestMessages checks every message of conditions, waits, events and errors: it uses no private word, and all but errors start
// with an upper-case letter or a name.
func TestMessages(t *testing.T) {
	c := catalog{packages: load(t), functions: map[string]located{}, found: map[message]bool{}}
	for _, p := range c.packages {
		for _, file := range p.Syntax {
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok {
					if o, ok := p.TypesInfo.Defs[f.Name].(*types.Func); ok {
						c.functions[o.FullName()] = located{p, f}
					}
				}
			}
		}
	}
	for _, p := range c.packages {
		for _, file := range p.Syntax {
			ast.Inspect(file, func(n ast.Node) bool { c.visit(p, n); return true })
		}
	}
	if len(c.found) < 400 {
		t.Fatalf("found only %d messages: the calls that create them have another form", len(c.found))
	}
	for _, m := range slices.SortedFunc(maps.Keys(c.found), compareMessages) {
		checkMessage(t, m)
	}
}

// checkMessage checks the words and the first letter of a message.
func checkMessage(t *testing.T, m message) {
	if private := privateWords.FindString(m.text); private != "" {
		t.Errorf("%s: %q: do not use %q", m.pkg, m.text, private)
	}
	word, _, _ := strings.Cut(m.text, " ")
	if first := m.text[:1]; m.what != "error" && first >= "a" && first <= "z" && !strings.Contains(word, ".") { // not a field
		t.Errorf("%s: %q: start with an upper-case letter or a name", m.pkg, m.text)
	}
}

// visit records the messages of a call, or of a struct with a reason and a message.
func (c *catalog) visit(p *packages.Package, n ast.Node) {
	switch n := n.(type) {
	case *ast.CallExpr:
		f, ok := function(p, n.Fun).(*types.Func)
		what, isSink := "", false
		if ok {
			what, isSink = sinks()[f.Origin().FullName()]
		}
		if !isSink {
			return
		}
		args := n.Args
		if what == "error" {
			args = args[1:] // the kind
		}
		c.note(p, what, args[0], args[1])
	case *ast.CompositeLit:
		var reason, text ast.Expr
		for _, e := range n.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				switch fmt.Sprint(kv.Key) {
				case "Reason":
					reason = kv.Value
				case "Message":
					text = kv.Value
				}
			}
		}
		if reason != nil && text != nil {
			c.note(p, "condition", reason, text)
		}
	}
}

func (c *catalog) note(p *packages.Package, what string, reason, text ast.Expr) {
	reasons := c.texts(p, reason, 0)
	if len(reasons) != 1 || strings.Contains(reasons[0], " ") {
		reasons = []string{""}
	}
	for _, text := range c.texts(p, text, 0) {
		if strings.Contains(text, " ") {
			c.found[message{shortPath(p.PkgPath), what, reasons[0], text}] = true
		}
	}
}

// texts returns the possible texts of an expression that the code contains: constants, formats, and results of functions
// of this module.
func (c *catalog) texts(p *packages.Package, e ast.Expr, depth int) []string {
	if value := p.TypesInfo.Types[e].Value; value != nil && value.Kind() == constant.String {
		return []string{constant.StringVal(value)}
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		return c.texts(p, e.X, depth)
	case *ast.BinaryExpr:
		left, right := c.texts(p, e.X, depth), c.texts(p, e.Y, depth)
		return joined(left, right)
	case *ast.CallExpr:
		f, ok := function(p, e.Fun).(*types.Func)
		if !ok {
			return nil
		}
		if f.FullName() == "fmt.Sprintf" {
			return c.texts(p, e.Args[0], depth)
		}
		return c.returned(f, depth)
	}
	return nil
}

// joined returns the texts of a concatenation, with an ellipsis for each operand that is computed.
func joined(left, right []string) []string {
	if len(left) == 0 {
		left = []string{"…"}
	}
	if len(right) == 0 {
		right = []string{"…"}
	}
	var out []string
	for _, l := range left {
		for _, r := range right {
			out = append(out, l+r)
		}
	}
	return out
}

// maxDepth is the number of nested function calls in which texts are searched.
const maxDepth = 3

func (c *catalog) returned(f *types.Func, depth int) []string {
	at, ok := c.functions[f.Origin().FullName()]
	if !ok || depth == maxDepth || at.decl.Body == nil {
		return nil
	}
	var out []string
	ast.Inspect(at.decl.Body, func(n ast.Node) bool {
		if r, ok := n.(*ast.ReturnStmt); ok {
			for _, e := range r.Results {
				out = append(out, c.texts(at.in, e, depth+1)...)
			}
		}
		return true
	})
	return out
}

func compareMessages(a, b message) int {
	return strings.Compare(a.pkg+"\x00"+a.reason+"\x00"+a.text+a.what, b.pkg+"\x00"+b.reason+"\x00"+b.text+b.what)
}

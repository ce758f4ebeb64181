package naming

import (
	"fmt"
	"regexp"
	"text/template"
	"text/template/parse"
)

// unbounded returns the first keyword of a template that can repeat its content, empty if there is none. Without
// repetition, the cost of a template grows only with its length. [Parse] and [ParseAny] reject such a template.
func unbounded(t *template.Template) string {
	if len(t.Templates()) > 1 {
		return "define"
	}
	if t.Tree == nil { // the template is empty
		return ""
	}
	return repeats(t.Root)
}

func repeats(n parse.Node) string {
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil { // there is no else
			return ""
		}
		for _, each := range n.Nodes {
			if word := repeats(each); word != "" {
				return word
			}
		}
	case *parse.IfNode:
		return repeatsIn(n.BranchNode)
	case *parse.WithNode:
		return repeatsIn(n.BranchNode)
	case *parse.RangeNode:
		return "range"
	case *parse.TemplateNode:
		return "template"
	}
	return ""
}

func repeatsIn(n parse.BranchNode) string {
	if word := repeats(n.List); word != "" {
		return word
	}
	return repeats(n.ElseList)
}

// widePrintf matches printf widths that are too large.
var widePrintf = regexp.MustCompile(`%[^a-zA-Z%]*(\d{4}|\*)`)

// boundedFunctions returns the functions of text/template that produce strings, with a limit for each. Without it, a
// few nested calls could produce a string of any length. [ParseAny] calls it.
func boundedFunctions() template.FuncMap {
	limit := func(text string) (string, error) {
		if len(text) > maxTemplate {
			return "", fmt.Errorf("a text has more than %d bytes", maxTemplate)
		}
		return text, nil
	}
	each := func(f func(args ...any) string) func(args ...any) (string, error) {
		return func(args ...any) (string, error) { return limit(f(args...)) }
	}
	return template.FuncMap{
		"print": each(fmt.Sprint), "println": each(fmt.Sprintln),
		"html": each(template.HTMLEscaper), "js": each(template.JSEscaper), "urlquery": each(template.URLQueryEscaper),
		"printf": func(format string, args ...any) (string, error) {
			if widePrintf.MatchString(format) {
				return "", fmt.Errorf("printf: a width has more than three digits or is an argument")
			}
			return limit(fmt.Sprintf(format, args...))
		},
	}
}

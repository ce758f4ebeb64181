package naming

import (
	"fmt"
	"regexp"
	"text/template"
	"text/template/parse"
)

// unbounded is the first word of a template that repeats something, empty if there is none: without repetition the work of a
// template grows with its length alone.
func unbounded(t *template.Template) string {
	if len(t.Templates()) > 1 {
		return "define"
	}
	if t.Tree == nil { // it is empty
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

// wide finds widths of printf that a text cannot have.
var wide = regexp.MustCompile(`%[^a-zA-Z%]*(\d{4}|\*)`)

// bounded are the functions of text/template that make texts out of texts, with a limit for each: a few that feed each other
// would otherwise make one of any length.
func bounded() template.FuncMap {
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
			if wide.MatchString(format) {
				return "", fmt.Errorf("printf: a width has more than three digits or is an argument")
			}
			return limit(fmt.Sprintf(format, args...))
		},
	}
}

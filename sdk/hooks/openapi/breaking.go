package openapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Breaking returns the changes in a document that break extensions built for an earlier one, sorted. A hook version is
// immutable; incompatible changes require a new version. A change is breaking if
//
//   - a hook, or a version of one, was removed without being deprecated;
//   - a field of a request was removed, has another type or format, or is no longer required, because handlers read it;
//   - a field of a response was removed, has another type or format, has fewer values, or became required, because existing
//     handlers do not change what they return.
//
// New hooks, new fields of requests, and new optional fields of responses are not breaking.
func Breaking(before, after *Doc) []string {
	var out []string
	for path, item := range before.Paths {
		now := after.Paths[path]
		switch {
		case now == nil && item.Post.Deprecated:
		case now == nil:
			out = append(out, fmt.Sprintf("%s: the hook is gone, and was not deprecated", item.Post.OperationID))
		default:
			c := comparison{before: before, after: after, hook: item.Post.OperationID, seen: map[string]bool{}}
			c.request = true
			c.compare("request", schemaIn(item.Post.RequestBody.Content), schemaIn(now.Post.RequestBody.Content))
			c.request, c.seen = false, map[string]bool{}
			c.compare("response", schemaIn(item.Post.Responses["200"].Content), schemaIn(now.Post.Responses["200"].Content))
			out = append(out, c.breaks...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func schemaIn(content map[string]Media) *Schema { return content["application/json"].Schema }

// comparison compares two versions of one hook's request or response.
type comparison struct {
	before, after *Doc
	hook          string
	request       bool
	seen          map[string]bool // names of schemas, which may be recursive
	breaks        []string
}

func (c *comparison) broken(at, format string, args ...any) {
	c.breaks = append(c.breaks, fmt.Sprintf("%s: %s: ", c.hook, at)+fmt.Sprintf(format, args...))
}

// resolved resolves a reference.
func resolved(d *Doc, s *Schema) *Schema {
	if s != nil && s.Ref != "" {
		return d.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	}
	return s
}

func (c *comparison) compare(at string, was, is *Schema) {
	if was != nil && was.Ref != "" {
		if c.seen[was.Ref] {
			return
		}
		c.seen[was.Ref] = true
	}
	was, is = resolved(c.before, was), resolved(c.after, is)
	switch {
	case was == nil:
		return
	case is == nil:
		c.broken(at, "it is gone")
		return
	case was.Type != is.Type, was.Format != is.Format, len(was.AnyOf) != len(is.AnyOf), len(was.AllOf) != len(is.AllOf):
		c.broken(at, "it is %s, not %s", form(is), form(was))
		return
	}
	if gone := without(was.Enum, is.Enum); !c.request && len(is.Enum) > 0 && (len(gone) > 0 || len(was.Enum) == 0) {
		c.broken(at, "fewer values are allowed: %s", strings.Join(is.Enum, ", "))
	}
	for i := range was.AnyOf {
		c.compare(at, was.AnyOf[i], is.AnyOf[i])
	}
	for i := range was.AllOf {
		c.compare(at, was.AllOf[i], is.AllOf[i])
	}
	c.compareBelow(at, was, is)
}

func (c *comparison) compareBelow(at string, was, is *Schema) {
	for _, name := range slices.Sorted(maps.Keys(was.Properties)) {
		c.compare(at+"."+name, was.Properties[name], is.Properties[name])
	}
	if was.Items != nil {
		c.compare(at+"[]", was.Items, is.Items)
	}
	if was.AdditionalProperties != nil {
		c.compare(at+"{}", was.AdditionalProperties, is.AdditionalProperties)
	}
	if c.request {
		for _, name := range without(was.Required, is.Required) {
			if is.Properties[name] != nil {
				c.broken(at+"."+name, "it need not be there any more")
			}
		}
		return
	}
	for _, name := range without(is.Required, was.Required) {
		c.broken(at+"."+name, "it must be there now")
	}
}

func form(s *Schema) string {
	switch {
	case s.Type == "":
		return "of any type"
	case s.Format != "":
		return s.Type + " (" + s.Format + ")"
	}
	return s.Type
}

// without returns the texts that are not in others.
func without(texts, others []string) []string {
	return slices.DeleteFunc(slices.Clone(texts), func(t string) bool { return slices.Contains(others, t) })
}

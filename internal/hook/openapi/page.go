package openapi

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/sdk/hooks/openapi"
)

//go:embed page.html
var page string

// Page renders the document as one self-contained HTML page, for [Handler] and `slipway extension openapi`.
func Page(doc *openapi.Doc) ([]byte, error) {
	t, err := template.New("page").Funcs(template.FuncMap{"prose": prose, "type": typeOf, "anchor": anchor}).Parse(page)
	if err != nil {
		return nil, fmt.Errorf("reading the template of the page: %w", err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, view(doc)); err != nil {
		return nil, fmt.Errorf("rendering the page: %w", err)
	}
	return out.Bytes(), nil
}

// contents is the data of the page template (page.html), which uses the names of these types' fields.
type contents struct {
	Title, Version, Description string
	Groups                      []group
	Schemas                     []schema
}

type group struct {
	Tag        string
	Operations []operation
}

type operation struct {
	Path, ID, Name, Summary, Description string
	Deprecated                           bool
	Request, Response                    schema
}

type schema struct {
	Name, Description string
	Fields            []field
}

type field struct {
	Name, Description string
	Required          bool
	Schema            *openapi.Schema
}

// view converts a document to the data of the page: operations by tag, then the schemas that are no request or
// response.
func view(doc *openapi.Doc) contents {
	c := contents{Title: doc.Info.Title, Version: doc.Info.Version, Description: doc.Info.Description}
	bodies := map[string]bool{}
	named := func(m map[string]openapi.Media) schema {
		name := target(m["application/json"].Schema)
		bodies[name] = true
		return schemaOf(name, doc.Components.Schemas[name])
	}
	for _, tag := range doc.Tags {
		g := group{Tag: tag.Name}
		for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
			if o := doc.Paths[path].Post; slices.Contains(o.Tags, tag.Name) {
				name, version, _ := strings.Cut(o.OperationID, "-")
				g.Operations = append(g.Operations, operation{
					Path: path, ID: o.OperationID, Name: name + " " + version, Summary: o.Summary, Description: o.Description,
					Deprecated: o.Deprecated, Request: named(o.RequestBody.Content), Response: named(o.Responses["200"].Content),
				})
			}
		}
		c.Groups = append(c.Groups, g)
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		if !bodies[name] {
			c.Schemas = append(c.Schemas, schemaOf(name, doc.Components.Schemas[name]))
		}
	}
	return c
}

func schemaOf(name string, s *openapi.Schema) schema {
	out := schema{Name: name, Description: s.Description}
	for _, n := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[n]
		out.Fields = append(out.Fields, field{n, p.Description, slices.Contains(s.Required, n), p})
	}
	return out
}

func target(s *openapi.Schema) string { return strings.TrimPrefix(s.Ref, "#/components/schemas/") }

func anchor(name string) string { return strings.ToLower(strings.ReplaceAll(name, ".", "-")) }

// typeOf returns the type of a field as HTML, with a link to the referenced schema.
func typeOf(s *openapi.Schema) template.HTML {
	esc := template.HTMLEscapeString
	switch {
	case s.Ref != "":
		name := target(s)
		return template.HTML(fmt.Sprintf(`<a href="#%s">%s</a>`, esc(anchor(name)), esc(name)))
	case len(s.AllOf) == 1:
		return typeOf(s.AllOf[0])
	case len(s.AnyOf) > 0:
		var parts []string
		for _, a := range s.AnyOf {
			parts = append(parts, string(typeOf(a)))
		}
		return template.HTML(strings.Join(parts, " or "))
	case len(s.Enum) > 0:
		return template.HTML(`"` + esc(strings.Join(s.Enum, `" or "`)) + `"`)
	case s.Items != nil:
		return "list of " + typeOf(s.Items)
	case s.Type == "object" && s.AdditionalProperties != nil && s.AdditionalProperties.Type+s.AdditionalProperties.Ref != "":
		return "map of text to " + typeOf(s.AdditionalProperties)
	case s.Type == "":
		return "any JSON"
	case s.Format != "":
		return template.HTML(esc(s.Type + ", " + s.Format))
	}
	return template.HTML(esc(s.Type))
}

// prose converts the Markdown of descriptions, which has only paragraphs and lists, to HTML.
func prose(text string) template.HTML {
	var b strings.Builder
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		lines := strings.Split(strings.TrimSpace(block), "\n")
		if strings.HasPrefix(lines[0], "- ") {
			b.WriteString("<ul>")
			for _, l := range lines {
				b.WriteString("<li>" + template.HTMLEscapeString(strings.TrimPrefix(l, "- ")) + "</li>")
			}
			b.WriteString("</ul>")
			continue
		}
		b.WriteString("<p>" + template.HTMLEscapeString(strings.Join(lines, " ")) + "</p>")
	}
	return template.HTML(b.String())
}

package openapi

import (
	"fmt"
	"net/http"
	"reflect"
	"strconv"

	"github.com/slipwayhq/slipway/sdk/hooks"
)

// Describe returns the description of a Go type, or of its JSON field with a given name; empty if it is unknown.
type Describe func(t reflect.Type, field string) string

// Info describes the document.
type Info struct {
	// Version is the version of the program, such as "v1.2.3".
	Version string
	// Describe provides descriptions of types and fields; nil for none.
	Describe Describe
}

// Doc is an OpenAPI 3.0 document, with the parts of the format that hooks need.
type Doc struct {
	OpenAPI    string               `json:"openapi"`
	Info       About                `json:"info"`
	Tags       []Tag                `json:"tags"`
	Paths      map[string]*PathItem `json:"paths"`
	Components Components           `json:"components"`
}

// About is the info object.
type About struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Version     string `json:"version"`
}

// Tag groups operations.
type Tag struct {
	Name string `json:"name"`
}

// PathItem describes a path. Hooks use POST.
type PathItem struct {
	Post *Operation `json:"post"`
}

// Operation is one version of one hook.
type Operation struct {
	Tags        []string             `json:"tags"`
	Summary     string               `json:"summary"`
	Description string               `json:"description,omitempty"`
	OperationID string               `json:"operationId"`
	Deprecated  bool                 `json:"deprecated,omitempty"`
	Parameters  []Parameter          `json:"parameters"`
	RequestBody *Body                `json:"requestBody"`
	Responses   map[string]*Response `json:"responses"`
}

// Parameter is a parameter of an operation.
type Parameter struct {
	Name        string  `json:"name"`
	In          string  `json:"in"`
	Required    bool    `json:"required,omitempty"`
	Description string  `json:"description"`
	Schema      *Schema `json:"schema"`
}

// Body is the body of a request.
type Body struct {
	Required bool             `json:"required"`
	Content  map[string]Media `json:"content"`
}

// Response is a response of an operation.
type Response struct {
	Description string           `json:"description"`
	Content     map[string]Media `json:"content,omitempty"`
}

// Media is the body in one media type.
type Media struct {
	Schema *Schema `json:"schema"`
}

// Components has the schemas by name.
type Components struct {
	Schemas map[string]*Schema `json:"schemas"`
}

// about is the description of every document.
const about = "The hooks of the Runtime SDK of Cluster API. The management cluster calls them; a Runtime Extension " +
	"serves those it names in its answer to the Discovery hook, over HTTPS, and is registered with an ExtensionConfig. " +
	"Requests and responses are JSON. A status other than 200 is an error of the call; the status in the response is the answer."

// Document returns the OpenAPI document for the hooks of a catalog. It returns an error if two Go types would get the
// same name.
func Document(c *hooks.Catalog, info Info) (*Doc, error) {
	s := newSchemas(info.Describe)
	doc := &Doc{
		OpenAPI: "3.0.3", Info: About{Title: "Cluster API Runtime SDK", Description: about, Version: info.Version},
		Paths: map[string]*PathItem{}, Components: Components{Schemas: s.named},
	}
	tagged := map[hooks.Tag]bool{}
	for _, h := range c.All() {
		path := h.Path("")
		if !h.Singleton {
			path += "/{name}"
		}
		doc.Paths[path] = &PathItem{Post: s.operation(h)}
		if !tagged[h.Tag] {
			tagged[h.Tag] = true
			doc.Tags = append(doc.Tags, Tag{string(h.Tag)})
		}
	}
	return doc, s.err
}

func (s *schemas) operation(h hooks.Hook) *Operation {
	request := s.body(h.NewRequest(), h.RequestKind(), h, "apiVersion", "kind")
	response := s.body(h.NewResponse(), h.ResponseKind(), h) // extension libraries omit apiVersion and kind in responses
	op := &Operation{
		Tags: []string{string(h.Tag)}, Summary: h.Summary, Description: h.Description,
		OperationID: h.ID.Hook + "-" + h.Version, Deprecated: h.Deprecation != nil,
		RequestBody: &Body{Required: true, Content: media(request)},
		Responses: map[string]*Response{
			strconv.Itoa(http.StatusOK): {Description: "The answer of the handler; its status is Success or Failure.", Content: media(response)},
			"default":                   {Description: "The handler could not be called; its failure policy says what follows."},
		},
		Parameters: []Parameter{},
	}
	if !h.Singleton {
		op.Parameters = append(op.Parameters, Parameter{
			Name: "name", In: "path", Required: true, Schema: &Schema{Type: "string", Pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", MaxLength: 63},
			Description: "The handler: its name in the answer to the Discovery hook.",
		})
	}
	op.Parameters = append(op.Parameters, Parameter{
		Name: "timeout", In: "query", Schema: &Schema{Type: "string"},
		Description: "How long the caller waits for the answer, as a Go duration such as 10s. The management cluster always says it.",
	})
	return op
}

func media(s *Schema) map[string]Media { return map[string]Media{"application/json": {s}} }

// body returns the schema of a request or response with its apiVersion and kind, and with additional required fields.
func (s *schemas) body(object any, kind string, h hooks.Hook, must ...string) *Schema {
	t := reflect.TypeOf(object).Elem()
	ref := s.of(t)
	if named := s.named[nameOf(t)]; named != nil && named.Properties != nil {
		named.Properties["apiVersion"] = &Schema{Type: "string", Enum: []string{h.APIVersion()}, Description: "The group and version of the hook."}
		named.Properties["kind"] = &Schema{Type: "string", Enum: []string{kind}, Description: "What this object is."}
		named.Required = required(named.Required, must...)
	}
	return ref
}

func (s *schemas) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}

package openapi

import (
	"compress/gzip"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"

	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/sdk/hooks"
	"github.com/slipwayhq/slipway/sdk/hooks/openapi"
)

//go:embed all:generated
var generated embed.FS

// Document returns the OpenAPI document of all hooks, for a version of Slipway. The webhook server serves it,
// `slipway extension openapi` prints it, and a release contains it.
func Document(version string) (*openapi.Doc, error) {
	descriptions, err := load()
	if err != nil {
		return nil, err
	}
	return openapi.Document(hooks.Default(), openapi.Info{Version: version, Describe: func(t reflect.Type, field string) string {
		return descriptions[key(t, field)]
	}})
}

// key returns the key of a description of a type or field: path.Type or path.Type.field.
func key(t reflect.Type, field string) string {
	key := t.PkgPath() + "." + t.Name()
	if field != "" {
		key += "." + field
	}
	return key
}

// load reads the embedded descriptions, which hack/openapi writes. They are missing in a binary that was built without
// that file.
func load() (map[string]string, error) {
	file, err := generated.Open("generated/descriptions.json.gz")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening the descriptions of fields: %w", err)
	}
	defer func() { _ = file.Close() }()
	reader, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("unpacking the descriptions of fields: %w", err)
	}
	var out map[string]string
	if err := json.NewDecoder(reader).Decode(&out); err != nil {
		return nil, fmt.Errorf("reading the descriptions of fields: %w", err)
	}
	return out, nil
}

// JSON returns the document as indented JSON. [Handler] and `slipway extension openapi` call it.
func JSON(doc *openapi.Doc) ([]byte, error) {
	data, err := json.MarshalIndent(doc, "", "  ")
	return append(data, '\n'), err
}

// YAML returns the document as YAML. [Handler], `slipway extension openapi` and the release build (package release)
// call it.
func YAML(doc *openapi.Doc) ([]byte, error) { return yaml.Marshal(doc) }

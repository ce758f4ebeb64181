package openapi

import (
	"fmt"
	"net/http"

	"github.com/slipwayhq/slipway/sdk/hooks/openapi"
)

// Prefix is the path at which [Handler] must be mounted. It is documented for users.
const Prefix = "/runtime-sdk/"

// Handler serves the page at [Prefix] and the document at openapi.json and openapi.yaml below it. The manager mounts it
// on its webhook server. Their content is generated once, in this call.
func Handler(version string) (http.Handler, error) {
	doc, err := Document(version)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for path, form := range map[string]struct {
		contentType string
		make        func(*openapi.Doc) ([]byte, error)
	}{
		"{$}":          {"text/html; charset=utf-8", Page},
		"openapi.json": {"application/json", JSON},
		"openapi.yaml": {"application/yaml", YAML},
	} {
		data, err := form.make(doc)
		if err != nil {
			return nil, fmt.Errorf("making %s: %w", path, err)
		}
		mux.HandleFunc("GET "+Prefix+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", form.contentType)
			_, _ = w.Write(data)
		})
	}
	return mux, nil
}

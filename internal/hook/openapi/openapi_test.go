package openapi

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/sdk/hooks"
	"github.com/slipwayhq/slipway/sdk/hooks/openapi"
	"github.com/slipwayhq/slipway/test/testkit"
)

// RT-22: a validator that another client wrote finds nothing wrong with the document, in either form.
func TestDocumentIsValid(t *testing.T) {
	doc, err := Document("v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	for name, form := range map[string]func(*openapi.Doc) ([]byte, error){"openapi.json": JSON, "openapi.yaml": YAML} {
		t.Run(name, func(t *testing.T) {
			data, err := form(doc)
			if err != nil {
				t.Fatal(err)
			}
			if out, err := validate(t, name, data); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	data, err := YAML(doc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := validate(t, "broken.yaml", []byte(strings.Replace(string(data), "in: query", "in: nowhere", 1))); err == nil {
		t.Error("the validator accepts anything")
	}
}

func validate(t *testing.T, name string, data []byte) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "tool", "-modfile", "hack/tools/go.mod", "validate", "--", file)
	cmd.Dir = "../../.."
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// RT-22: fields are explained, once `make generate` has collected what the Go types say of them.
func TestDescriptions(t *testing.T) {
	doc, err := Document("v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	s := doc.Components.Schemas["hooks.v1alpha1.GeneratePatchesResponseItem"]
	if s.Properties["uid"].Description == "" || s.Description == "" || strings.Contains(s.Description, "+kubebuilder") {
		t.Errorf("run `make generate`: the field uid of %+v is not explained", s)
	}
}

// docs/runtime-sdk-openapi.html is the page of the same document, without the texts of others.
func TestPage(t *testing.T) {
	doc, err := openapi.Document(hooks.Default(), openapi.Info{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Page(doc)
	if err != nil {
		t.Fatal(err)
	}
	testkit.CompareGolden(t, "../../../docs/runtime-sdk-openapi.html", string(got))
	text := string(got)
	for _, bad := range []string{"<script", "http://", "https://", "url("} {
		if strings.Contains(text, bad) {
			t.Errorf("the page needs something else: %s", bad)
		}
	}
	for part := range strings.SplitSeq(text, `href="#`) {
		if id, _, ok := strings.Cut(part, `"`); ok && !strings.HasPrefix(part, "<!DOCTYPE") && !strings.Contains(text, `id="`+id+`"`) {
			t.Errorf("a link leads nowhere: %s", id)
		}
	}
}

// RT-22: the document is served in both forms, beside the page.
func TestHandler(t *testing.T) {
	h, err := Handler("v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]struct{ kind, text string }{
		"":             {"text/html; charset=utf-8", "Slipway v1.2.3"},
		"openapi.json": {"application/json", `"version": "v1.2.3"`},
		"openapi.yaml": {"application/yaml", "version: v1.2.3"},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, Prefix+path, nil))
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != want.kind || !strings.Contains(w.Body.String(), want.text) {
			t.Errorf("%s: %d %s %.200s", path, w.Code, w.Header().Get("Content-Type"), w.Body)
		}
		var any map[string]any
		if path != "" && yaml.Unmarshal(w.Body.Bytes(), &any) != nil {
			t.Errorf("%s is not what it says it is", path)
		}
	}
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, Prefix+"other", nil)); w.Code != http.StatusNotFound {
		t.Errorf("another path: %d", w.Code)
	}
}

package extensiontest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/sdk/extension"
	"github.com/slipwayhq/slipway/sdk/extension/patch"
	"github.com/slipwayhq/slipway/sdk/extension/recording"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

// Call calls a handler with the request and returns its response, an R:
//
//	out := extensiontest.Call[hooksv1.BeforeClusterCreateResponse](t, x, "check-owner", in)
//
// The kind of the request is set from the catalog of the extension. The test fails if the extension has no such
// handler, or rejects the request. The test itself must check the response status.
func Call[R any, PR response[R]](t testing.TB, x *extension.Extension, handler string, request runtime.Object) PR {
	t.Helper()
	out, _ := call[R, PR](t, x, handler, request)
	return out
}

// call returns the response, and its body.
func call[R any, PR response[R]](t testing.TB, x *extension.Extension, handler string, request runtime.Object) (PR, []byte) {
	t.Helper()
	path, ok := x.Path(handler)
	if !ok {
		t.Fatalf("the extension has no handler %q; it serves %s", handler, strings.Join(x.Paths(), ", "))
	}
	if hook, ok := x.Catalog().OfRequest(request); ok {
		hook.StampRequest(request)
	}
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	code, answer := send(t, x, "http://extension"+path, body)
	if code != http.StatusOK {
		t.Fatalf("handler %q refuses the request: %d %s", handler, code, answer)
	}
	out := PR(new(R))
	if err := json.Unmarshal(answer, out); err != nil {
		t.Fatalf("handler %q answers with something else than a %T: %v", handler, out, err)
	}
	return out, answer
}

// response is a pointer to R that implements ResponseObject.
type response[R any] interface {
	*R
	hooksv1.ResponseObject
}

// Discover returns the discovery response of the extension.
func Discover(t testing.TB, x *extension.Extension) *hooksv1.DiscoveryResponse {
	t.Helper()
	hook, _ := x.Catalog().Hook(hooks.Discovery)
	body, err := json.Marshal(hook.Request())
	if err != nil {
		t.Fatal(err)
	}
	code, answer := send(t, x, "http://extension"+hook.Path(""), body)
	out := &hooksv1.DiscoveryResponse{}
	if err := json.Unmarshal(answer, out); err != nil || code != http.StatusOK {
		t.Fatalf("discovery: %d %s", code, answer)
	}
	return out
}

func send(t testing.TB, x *extension.Extension, url string, body []byte) (code int, answer []byte) {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	x.Handler(slog.New(slog.NewTextHandler(t.Output(), nil))).ServeHTTP(w, request)
	return w.Code, w.Body.Bytes()
}

// Load reads a request from a YAML or JSON file. Unknown fields are an error.
func Load(t testing.TB, path string, into runtime.Object) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// Replay sends the requests of a recording, byte for byte, and calls check with every recorded call and the current
// response. If check is nil, it compares the two responses and reports all differences.
func Replay(t *testing.T, x *extension.Extension, path string, check func(t *testing.T, was recording.Call, code int, answer []byte)) {
	t.Helper()
	calls, err := recording.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(calls) == 0 {
		t.Fatalf("%s holds no calls", path)
	}
	if check == nil {
		check = same
	}
	for n, c := range calls {
		t.Run(fmt.Sprintf("%d-%s-%s", n+1, c.Hook, c.Handler), func(t *testing.T) {
			url := "http://extension" + c.Path
			if c.Query != "" {
				url += "?" + c.Query
			}
			code, answer := send(t, x, url, []byte(c.Request))
			check(t, c, code, answer)
		})
	}
}

func same(t *testing.T, was recording.Call, code int, answer []byte) {
	t.Helper()
	for _, d := range recording.Compare(was, recording.Answer{Code: code, Body: answer}) {
		t.Error(d)
	}
}

// Patched applies the patches of a response to the templates in its request, in order, and returns the templates by
// uid. The test fails if a patch cannot be applied or has no template.
func Patched(t testing.TB, in *hooksv1.GeneratePatchesRequest, out *hooksv1.GeneratePatchesResponse) map[string]*unstructured.Unstructured {
	t.Helper()
	raw := map[string][]byte{}
	for _, i := range in.Items {
		raw[string(i.UID)] = i.Object.Raw
	}
	for _, i := range out.Items {
		before, ok := raw[string(i.UID)]
		if !ok {
			t.Fatalf("a patch is for uid %q, which no template of the request has", i.UID)
		}
		after, err := patch.Apply(i.PatchType, before, i.Patch)
		if err != nil {
			t.Fatalf("template %s: %v", i.UID, err)
		}
		raw[string(i.UID)] = after
	}
	templates := map[string]*unstructured.Unstructured{}
	for uid, data := range raw {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(data); err != nil {
			t.Fatalf("template %s: %v", uid, err)
		}
		templates[uid] = u
	}
	return templates
}

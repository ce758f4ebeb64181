package hook

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/sdk/hooks"
	"github.com/slipwayhq/slipway/test/hooktest"
)

// What a server made with the reference Go library sends, written down by hand: no apiVersion and no kind, fields in the
// order of the Go types and as their omitempty tags say, handlers in the order of a Go map, and a Content-Type that
// net/http guesses.
const (
	referenceDiscovery = `{"status":"Success","handlers":[` +
		`{"name":"set-image","requestHook":{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","hook":"GeneratePatches"}},` +
		`{"name":"before-upgrade","requestHook":{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","hook":"BeforeClusterUpgrade"},"timeoutSeconds":5,"failurePolicy":"Ignore"}]}`
	referenceUpgrade = `{"status":"Success","message":"backing up volumes","retryAfterSeconds":20}`
	referencePatches = `{"status":"Success","items":[` +
		`{"uid":"u1","patchType":"JSONPatch","patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL3NwZWMvYSIsInZhbHVlIjoxfV0="},` +
		`{"uid":"u2","patchType":"JSONMergePatch","patch":"e30="}]}`
)

// plain serves a text as a handler does that sets no header.
func plain(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func hookNamed(name string) hooks.ID {
	return hooks.ID{Name: hooks.Name{Group: hooks.Group, Hook: name}, Version: "v1alpha1"}
}

// RT-23, RT-28: an extension made with the reference library is discovered and called.
func TestReferenceServer(t *testing.T) {
	w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
	x.Serve(hooks.Discovery.Path(""), plain(referenceDiscovery))
	x.Serve(hookNamed("BeforeClusterUpgrade").Path("before-upgrade"), plain(referenceUpgrade))
	x.Serve(hookNamed("GeneratePatches").Path("set-image"), plain(referencePatches))
	s := w.mustDiscover(x.ExtensionConfig("ref"))
	listed := func(name, hook string, timeout int32, policy runtimev1.FailurePolicy) runtimev1.ExtensionHandler {
		return runtimev1.ExtensionHandler{Name: name, TimeoutSeconds: timeout, FailurePolicy: policy,
			RequestHook: runtimev1.GroupVersionHook{APIVersion: hooks.Discovery.APIVersion(), Hook: hook}}
	}
	want := map[string]runtimev1.ExtensionHandler{}
	for _, h := range []runtimev1.ExtensionHandler{
		listed("before-upgrade.ref", "BeforeClusterUpgrade", 5, "Ignore"), listed("set-image.ref", "GeneratePatches", 10, "Fail"),
	} {
		want[h.Name] = h
	}
	got := map[string]runtimev1.ExtensionHandler{}
	for _, h := range StatusHandlers("ref", s.Handlers) {
		got[h.Name] = h
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status.handlers:\n%s", diff)
	}

	upgrade := &hooksv1.BeforeClusterUpgradeResponse{}
	call := Invocation{Request: &hooksv1.BeforeClusterUpgradeRequest{Cluster: ClusterForRequest(cluster("ns"))}, Response: upgrade}
	for range 2 { // the second answer is the one that was kept
		if _, err := w.CallAll(t.Context(), cluster("ns"), call); err != nil {
			t.Fatal(err)
		}
		if upgrade.Status != hooksv1.ResponseStatusSuccess || upgrade.Message != "backing up volumes" || upgrade.RetryAfterSeconds != 20 ||
			upgrade.Kind != "BeforeClusterUpgradeResponse" {
			t.Errorf("BeforeClusterUpgrade: %+v", upgrade)
		}
	}

	patches := &hooksv1.GeneratePatchesResponse{}
	call = Invocation{Request: &hooksv1.GeneratePatchesRequest{}, Response: patches}
	if err := w.Call(t.Context(), cluster("ns"), "set-image.ref", call); err != nil {
		t.Fatal(err)
	}
	items := []hooksv1.GeneratePatchesResponseItem{
		{UID: "u1", PatchType: hooksv1.JSONPatchType, Patch: []byte(`[{"op":"add","path":"/spec/a","value":1}]`)},
		{UID: "u2", PatchType: hooksv1.JSONMergePatchType, Patch: []byte(`{}`)},
	}
	if diff := cmp.Diff(items, patches.Items); diff != "" {
		t.Errorf("patches:\n%s", diff)
	}
}

// RT-28: what an answer says of its type may be missing, in whole or in part, and must not be wrong.
func TestTypeOfAnswers(t *testing.T) {
	const version, kind = `"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1",`, `"kind":"BeforeClusterCreateResponse",`
	const want = ", want BeforeClusterCreateResponse of hooks.runtime.cluster.x-k8s.io/v1alpha1"
	tests := map[string]struct {
		reason, says, err string
	}{
		"both":               {says: version + kind},
		"neither":            {reason: "the reference server", says: ""},
		"empty":              {says: `"apiVersion":"","kind":"",`},
		"apiVersion alone":   {says: version},
		"kind alone":         {says: kind},
		"another kind":       {says: `"kind":"BeforeClusterDeleteResponse",`, err: "the response is a BeforeClusterDeleteResponse without apiVersion" + want},
		"another apiVersion": {says: `"apiVersion":"v1",`, err: "the response is a document of v1 without kind" + want},
		"no apiVersion at all": {
			reason: "one that cannot be parsed is there, and wrong", says: kind + `"apiVersion":"a/b/c",`,
			err: "the response is a BeforeClusterCreateResponse of a/b/c" + want,
		},
		"a long kind": {
			reason: "messages are bounded, and control no terminal", says: `"kind":"x\u001b` + strings.Repeat("é", 1<<20) + `",`,
			err: "the response is a x " + strings.Repeat("é", 63) + "… without apiVersion" + want,
		},
	}
	h, _ := hooks.Default().Hook(hookNamed("BeforeClusterCreate"))
	for name, tt := range tests {
		response, _, err := decode([]byte(`{`+tt.says+`"status":"Success"}`), h)
		if (err == nil) != (tt.err == "") || err != nil && (err.Error() != tt.err || reasonOf(err) != reasonWrongKind) {
			t.Errorf("%s (%s): got %v, want %q", name, tt.reason, err, tt.err)
		}
		if err == nil && response.GetObjectKind().GroupVersionKind().Kind != "BeforeClusterCreateResponse" {
			t.Errorf("%s: the response is a %s", name, response.GetObjectKind().GroupVersionKind())
		}
	}
}

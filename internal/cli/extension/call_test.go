package extension

import (
	"strings"
	"testing"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/internal/extensiontools"
)

// A person reads what a patch changes, and not its base64; what is no JSON is shown as it came.
func TestPatchesAreLegible(t *testing.T) {
	item := func(patch string) runtimehooksv1.GeneratePatchesResponseItem {
		return runtimehooksv1.GeneratePatchesResponseItem{UID: "1", PatchType: runtimehooksv1.JSONPatchType, Patch: []byte(patch)}
	}
	out := &strings.Builder{}
	err := callText(out, extensiontools.CallResult{Handler: "h.x", Hook: "GeneratePatches", Response: &runtimehooksv1.GeneratePatchesResponse{
		Items: []runtimehooksv1.GeneratePatchesResponseItem{item(`[{"op":"add","path":"/spec/a","value":"b"}]`), item("no JSON")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# h.x responded to GeneratePatches", "op: add\n", "path: /spec/a\n", "patch: bm8gSlNPTg==\n", "patchType: JSONPatch\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}

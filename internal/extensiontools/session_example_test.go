package extensiontools_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/internal/extensiontools"
	"github.com/slipwayhq/slipway/sdk/extension/patch"
)

// The extension in Python, with nothing but its standard library, does what one in Go does.
func TestPythonExample(t *testing.T) {
	const example = "../../examples/extension-python/"
	c := exampleCluster(t)
	manage(t.Context(), t, c)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	o, out := newTold(), &safe{}
	ended := make(chan error, 1)
	go func() {
		ended <- extensiontools.RunSession(ctx, c, o.options(extensiontools.LocalOptions{
			Command: []string{"python3", example + "extension.py"}, Environment: os.Environ(), Out: out, Within: time.Minute,
		}))
	}()
	select {
	case <-o.ready:
	case err := <-ended:
		t.Fatalf("%v\n%s%s", err, o.lines.String(), out.String())
	}
	do := func(handler, file string) any {
		request, err := os.ReadFile(example + file)
		if err != nil {
			t.Fatal(err)
		}
		result, err := extensiontools.Call(ctx, c, extensiontools.CallOptions{Handler: handler, Request: request, Now: time.Now})
		if err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		return result.Response
	}
	if r := do("check-owner", "before-cluster-create.yaml").(*hooksv1.BeforeClusterCreateResponse); r.RetryAfterSeconds != 0 {
		t.Errorf("a Cluster with an owner is held back: %+v", r)
	}
	held, err := extensiontools.Call(ctx, c, extensiontools.CallOptions{Handler: "check-owner", Request: request("demo", "default"), Now: time.Now})
	if r := held.Response.(*hooksv1.BeforeClusterCreateResponse); err != nil || r.RetryAfterSeconds != 10 || r.Message != "the Cluster needs the label example.com/owner" {
		t.Errorf("a Cluster without an owner: %+v %v", r, err)
	}
	patches := do("set-image", "generate-patches.yaml").(*hooksv1.GeneratePatchesResponse)
	if len(patches.Items) != 1 || patches.Items[0].UID != "workers" {
		t.Fatalf("got %+v", patches)
	}
	got, err := patch.Apply(patches.Items[0].PatchType, []byte(`{"spec":{"a":1}}`), patches.Items[0].Patch)
	if d := cmp.Diff(`{"spec":{"a":1,"template":{"spec":{"backend":{"container":{"image":"registry.example.com/node:v2"}}}}}}`, string(got)); d != "" || err != nil {
		t.Errorf("(-want +got):\n%s%v", d, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

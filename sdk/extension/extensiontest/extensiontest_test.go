package extensiontest_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/extension"
	"github.com/slipwayhq/slipway/sdk/extension/extensiontest"
	"github.com/slipwayhq/slipway/sdk/extension/recording"
)

func greeter(t *testing.T) *extension.Extension {
	t.Helper()
	x, err := extension.New(extension.On("greet", hooksv1.BeforeClusterCreate,
		func(_ context.Context, in *hooksv1.BeforeClusterCreateRequest, out *hooksv1.BeforeClusterCreateResponse) {
			out.Message = "hello " + in.Cluster.Name
		}))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// RT-23: a handler is tested with requests from files, without a network.
func TestCallAndLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "request.yaml")
	if err := os.WriteFile(file, []byte("cluster: {metadata: {name: demo}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	in := &hooksv1.BeforeClusterCreateRequest{}
	extensiontest.Load(t, file, in)
	out := extensiontest.Call[hooksv1.BeforeClusterCreateResponse](t, greeter(t), "greet", in)
	if out.Message != "hello demo" || in.Kind != "BeforeClusterCreateRequest" {
		t.Errorf("got %+v for %+v", out, in)
	}
}

// RT-23: recorded calls are repeated byte for byte, and what differs is seen.
func TestReplay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	const kind = `"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"BeforeClusterCreate`
	call := recording.Call{
		Path: "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/greet", Query: "timeout=5s", Hook: "beforeclustercreate", Handler: "greet", Code: 200,
		Request:  `{` + kind + `Request","cluster":{"metadata":{"name":"demo"}}}`,
		Response: `{` + kind + `Response","status":"Success","message":"hello demo","retryAfterSeconds":0}`,
	}
	if err := recording.NewWriter(f).Write(call); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	extensiontest.Replay(t, greeter(t), path, nil)
	seen := false
	extensiontest.Replay(t, greeter(t), path, func(t *testing.T, was recording.Call, code int, answer []byte) {
		seen = true
		was.Response = `{` + kind + `Response","status":"Success","message":"bye","retryAfterSeconds":0}`
		if got := recording.Compare(was, recording.Answer{Code: code, Body: answer}); len(got) != 1 || got[0] != `message: "bye" → "hello demo"` {
			t.Errorf("differences: %q", got)
		}
	})
	if !seen {
		t.Error("no call was repeated")
	}
}

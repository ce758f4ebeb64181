package hook

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/slipwayhq/slipway/test/bench/harness"
)

// TestServe calls an extension, shuts the last one and opens it again.
func TestServe(t *testing.T) {
	var out bytes.Buffer
	if err := serve(&out); err != nil {
		t.Fatal(err)
	}
	var ready serving
	if err := json.Unmarshal(out.Bytes(), &ready); err != nil || len(ready.URLs) != extensions {
		t.Fatalf("%+v, %v", ready, err)
	}
	b := &benchmark{}
	if err := b.discover(t.Context(), ready); err != nil {
		t.Fatal(err)
	}
	for i := range extensions {
		if err := b.call(t.Context(), i); err != nil {
			t.Error(err)
		}
	}
	s, err := b.post(t.Context(), statsPath)
	if err != nil || s.Calls != extensions || s.P50 <= 0 || s.Connections < extensions {
		t.Errorf("got %+v, %v", s, err)
	}
	if _, err := b.post(t.Context(), hangPath); err != nil {
		t.Fatal(err)
	}
	if err := b.call(t.Context(), extensions-1); err == nil {
		t.Error("no error from an extension that hangs")
	}
	if err := b.call(t.Context(), 0); err != nil {
		t.Error(err)
	}
	if _, err := b.post(t.Context(), openPath); err != nil {
		t.Fatal(err)
	}
	if err := b.call(t.Context(), extensions-1); err != nil {
		t.Error(err)
	}
	if harness.Milliseconds(s.P50) > 1000 {
		t.Errorf("an immediate response took %v", s.P50)
	}
}

func TestFlags(t *testing.T) {
	for _, args := range [][]string{{"--phase", "1ms"}, {"--time", "0"}} {
		if err := Command().ParseFlags(args); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}

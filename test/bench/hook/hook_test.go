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
	serve(&out)
	var ready serving
	if err := json.Unmarshal(out.Bytes(), &ready); err != nil || len(ready.URLs) != extensions {
		t.Fatalf("%+v, %v", ready, err)
	}
	b := &benchmark{}
	b.discover(t.Context(), ready)
	for i := range extensions {
		if err := b.call(t.Context(), i); err != nil {
			t.Error(err)
		}
	}
	s := b.post(t.Context(), statsPath)
	if s.Calls != extensions || s.P50 <= 0 || s.Connections < extensions {
		t.Errorf("got %+v", s)
	}
	b.post(t.Context(), hangPath)
	if err := b.call(t.Context(), extensions-1); err == nil {
		t.Error("no error from an extension that hangs")
	}
	if err := b.call(t.Context(), 0); err != nil {
		t.Error(err)
	}
	b.post(t.Context(), openPath)
	if err := b.call(t.Context(), extensions-1); err != nil {
		t.Error(err)
	}
	if harness.Milliseconds(s.P50) > 1000 {
		t.Errorf("an immediate response took %v", s.P50)
	}
}

package controlplane

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

func TestAnonymousRequests(t *testing.T) {
	path := filepath.Join(t.TempDir(), "auth.json")
	if err := writeAuthentication(path, nil, "/readyz", clusterInfoPath); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Anonymous struct {
			Enabled    bool
			Conditions []struct{ Path string }
		}
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if !got.Anonymous.Enabled || len(got.Anonymous.Conditions) != 2 || got.Anonymous.Conditions[1].Path != clusterInfoPath {
		t.Errorf("got %+v", got)
	}
}

package main

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCommittedDescriptions: the descriptions in the repository are the comments of the Go types as they are.
func TestCommittedDescriptions(t *testing.T) {
	t.Chdir("../..")
	want, err := collectAll()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(output)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := json.NewDecoder(unpacked).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s differs from the Go types; run: make crds (-want +got):\n%s", output, diff)
	}
}

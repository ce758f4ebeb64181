package main

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCommittedCRDs: the CRDs in the repository are generated from the Go types as they are.
func TestCommittedCRDs(t *testing.T) {
	t.Chdir("../..")
	want, err := generate()
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
	var got []json.RawMessage
	if err := json.NewDecoder(unpacked).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(texts(t, want), texts(t, got)); diff != "" {
		t.Errorf("%s differs from the Go types; run: make crds (-want +got):\n%s", output, diff)
	}
}

// texts returns each object with one form of white space.
func texts(t *testing.T, list []json.RawMessage) []string {
	t.Helper()
	var out []string
	for _, object := range list {
		var content any
		if err := json.Unmarshal(object, &content); err != nil {
			t.Fatal(err)
		}
		text, err := json.MarshalIndent(content, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	return out
}

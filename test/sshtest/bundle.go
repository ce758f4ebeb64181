package sshtest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/slipwayhq/slipway/internal/bundle"
)

// WriteBundle writes a bundle with the given files to a directory of the test.
func WriteBundle(t testing.TB, files map[string][]byte) bundle.Bundle {
	t.Helper()
	dir := t.TempDir()
	m := bundle.Manifest{Format: 1, KubernetesVersion: "v1.36.3", Architecture: "amd64", PauseImage: "slipway.dev/pause:3.10"}
	write := func(name string, data []byte) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range files {
		write(name, data)
		sum := sha256.Sum256(data)
		f := bundle.File{Path: name, Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:]), Executable: true}
		if name == "images/control-plane.tar" {
			f.Role = "control-plane"
		}
		m.Files = append(m.Files, f)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	write("manifest.json", text)
	b, err := bundle.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

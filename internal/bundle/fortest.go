package bundle

import (
	"os"
	"path/filepath"
)

// WriteForTest writes a bundle with the given files, for tests of other packages.
func WriteForTest(dir string, files map[string][]byte) (Bundle, error) {
	for name, data := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return Bundle{}, err
		}
		if err := os.WriteFile(file, data, 0o755); err != nil {
			return Bundle{}, err
		}
	}
	m, err := describe(dir, Manifest{KubernetesVersion: "v1.36.3", Architecture: "amd64", PauseImage: "slipway.dev/pause:3.10"})
	if err != nil {
		return Bundle{}, err
	}
	if err := writeManifest(dir, m); err != nil {
		return Bundle{}, err
	}
	return Open(dir)
}

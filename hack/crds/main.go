// Command crds writes internal/manager/crds/generated/crds.json.gz, which contains the CRDs of the Cluster API groups
// and of Slipway's own groups, and the deep copy functions of Slipway's types (zz_generated.deepcopy.go under api). It
// runs controller-gen on the Go types. Run `go run ./hack/crds` from the root of the module. Files are written only
// when their content changes, so that builds remain incremental. Package internal/manager/crds adds labels, conversion
// and other properties that markers cannot express.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"

	"sigs.k8s.io/yaml"
)

const (
	ownTypes     = "./api/..."
	clusterTypes = "sigs.k8s.io/cluster-api/api/..."
	output       = "internal/manager/crds/generated/crds.json.gz"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run() error {
	if err := controllerGen("object", "paths="+ownTypes); err != nil {
		return err
	}
	list, err := generate()
	if err != nil {
		return err
	}
	packed, err := pack(list)
	if err != nil {
		return err
	}
	return writeIfChanged(output, packed)
}

// generate returns the CRDs of the Go types, sorted by name.
func generate() ([]json.RawMessage, error) {
	dir, err := os.MkdirTemp("", "slipway-crds-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the CRDs: %w", err)
	}
	defer os.RemoveAll(dir)
	err = controllerGen("crd:crdVersions=v1", "paths="+ownTypes, "paths="+clusterTypes, "output:crd:dir="+dir)
	if err != nil {
		return nil, err
	}
	return collect(dir)
}

// controllerGen runs the version of controller-gen that is pinned in go.mod.
func controllerGen(args ...string) error {
	cmd := exec.Command("go", append([]string{"tool", "controller-gen"}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running controller-gen %v: %w", args, err)
	}
	return nil
}

// collect reads the YAML files in dir, sorted by name, as JSON objects.
func collect(dir string) ([]json.RawMessage, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("controller-gen wrote no CRD to %s", dir)
	}
	sort.Strings(names)
	list := make([]json.RawMessage, 0, len(names))
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		object, err := yaml.YAMLToJSON(content)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", filepath.Base(name), err)
		}
		list = append(list, object)
	}
	return list, nil
}

// pack compresses the list. The output is deterministic.
func pack(list []json.RawMessage) ([]byte, error) {
	var packed bytes.Buffer
	writer, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(writer).Encode(list); err != nil {
		return nil, fmt.Errorf("writing the CRDs: %w", err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("compressing the CRDs: %w", err)
	}
	return packed.Bytes(), nil
}

func writeIfChanged(name string, content []byte) error {
	old, err := os.ReadFile(name)
	if err == nil && bytes.Equal(old, content) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("making the folder of %s: %w", name, err)
	}
	if err := os.WriteFile(name, content, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	fmt.Printf("wrote %s (%d bytes)\n", name, len(content))
	return nil
}

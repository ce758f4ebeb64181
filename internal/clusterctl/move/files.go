package move

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/clusterctl/move/graph"
	"github.com/slipwayhq/slipway/internal/fault"
)

// largestFile is the maximum file size, which exceeds the size limit of API servers for objects.
const largestFile = 8 << 20

// fileName returns the file name for an object. The form is clusterctl's, which can read an export.
func fileName(id graph.ID) string {
	return strings.ReplaceAll(fmt.Sprintf("%s_%s_%s.yaml", id.Kind, id.Namespace, id.Name), ":", "_")
}

// EncodeFile returns the file contents by file name, for exports and for backups (package operate/backup). If two
// objects differ only in the API group, the name includes the group.
func EncodeFile(objects []*unstructured.Unstructured) (map[string][]byte, error) {
	out := make(map[string][]byte, len(objects))
	for _, o := range objects {
		id := graph.IDOf(o)
		name := fileName(id)
		if _, taken := out[name]; taken {
			id.Kind += "." + id.Group
			name = fileName(id)
		}
		data, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", id, err)
		}
		out[name] = data
	}
	return out, nil
}

// DecodeFile parses the object in a file. Restores and backups (package operate/backup) read their objects with it.
func DecodeFile(name string, data []byte) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSONStrict(data)
	if err == nil {
		err = o.UnmarshalJSON(data)
	}
	if err == nil && (o.GetAPIVersion() == "" || o.GetName() == "") {
		err = errors.New("apiVersion or metadata.name is missing")
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "InvalidFile", "%s is not an object of Kubernetes: %v; nothing was created", name, err).From(err)
	}
	return o, nil
}

// prepareFolder creates the directory. It returns an error if the directory already contains objects. Move.beginExport
// calls it.
func prepareFolder(dir string) error {
	if err := createFolder(dir); err != nil {
		return err
	}
	existing, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err == nil && len(existing) > 0 {
		return fault.New(fault.Invalid, "Directory", "%s has files already (%s): name an empty directory", dir, filepath.Base(existing[0]))
	}
	return err
}

func createFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fault.New(fault.Invalid, "Directory", "the directory cannot be created: %v", err).From(err)
	}
	return nil
}

// writeFolder writes each object to a file that only its owner can read, because the objects include Secrets.
// [ToDirectory] calls it.
func writeFolder(dir string, objects []*unstructured.Unstructured) error {
	encoded, err := EncodeFile(objects)
	if err != nil {
		return err
	}
	for name, data := range encoded {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path+".new", data, 0o600); err != nil {
			return fmt.Errorf("writing files: %w", err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			return fmt.Errorf("writing files: %w", err)
		}
	}
	return nil
}

// readFolder reads all objects in a directory. [FromDirectory] calls it.
func readFolder(dir string) ([]*unstructured.Unstructured, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fault.New(fault.Invalid, "Directory", "the directory cannot be read: %v", err).From(err)
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.IsDir() || filepath.Ext(e.Name()) != ".yaml" })
	if len(entries) == 0 {
		return nil, fault.New(fault.Invalid, "Directory", "%s has no files with objects (*.yaml): check the path", dir)
	}
	var out []*unstructured.Unstructured
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() || info.Size() > largestFile {
			return nil, fault.New(fault.Invalid, "InvalidFile", "%s is no regular file of at most %d MiB; nothing was created", e.Name(), largestFile>>20)
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		o, err := DecodeFile(e.Name(), data)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

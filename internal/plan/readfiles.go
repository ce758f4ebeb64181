package plan

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/manifest"
)

// reasonInvalidInput is the reason of the errors of this package.
const reasonInvalidInput = "InvalidInput"

// ReadFiles reads the objects in the files of `slipway plan -f` and `--delete`, in order; "-" is standard input. In a
// folder and its subfolders it reads the files that end with .yaml, .yml or .json, sorted by path.
func ReadFiles(paths []string, stdin io.Reader) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, path := range paths {
		names, err := expand(path)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			found, err := file(name, stdin)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	return out, nil
}

func expand(path string) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fault.New(fault.Invalid, reasonInvalidInput, "%s cannot be read: %v", path, cause(err)).From(err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var out []string
	err = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) {
			out = append(out, name)
		}
		return err
	})
	if err != nil {
		return nil, fault.New(fault.Invalid, reasonInvalidInput, "%s cannot be read: %v", path, cause(err)).From(err)
	}
	return out, nil
}

// cause returns an error without its path, which the message contains already.
func cause(err error) error {
	if e := (&fs.PathError{}); errors.As(err, &e) {
		return e.Err
	}
	return err
}

func file(path string, stdin io.Reader) ([]*unstructured.Unstructured, error) {
	var data []byte
	var err error
	if path == "-" {
		path = "the standard input"
		data, err = io.ReadAll(stdin)
	} else {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, reasonInvalidInput, "%s cannot be read: %v", path, cause(err)).From(err)
	}
	out, err := manifest.Objects(data)
	if err != nil {
		return nil, fault.New(fault.Invalid, reasonInvalidInput, "%s is not a manifest: %v", path, err).From(err)
	}
	return out, nil
}

// ReadFolder reads a copy of a management cluster from a folder (`slipway plan --offline`): its objects with their
// status, and its CRDs. For kinds without a CRD in the folder, it uses the CRDs of this build.
func ReadFolder(path string, own []*apiextensionsv1.CustomResourceDefinition) (Snapshot, error) {
	objects, err := ReadFiles([]string{path}, nil)
	if err != nil {
		return Snapshot{}, err
	}
	var s Snapshot
	var crds []*apiextensionsv1.CustomResourceDefinition
	have := map[string]bool{}
	for _, u := range objects {
		if u.GroupVersionKind().GroupKind() != kube.CRDKind().GroupKind() {
			s.Objects = append(s.Objects, u)
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, crd); err != nil {
			return s, fault.New(fault.Invalid, reasonInvalidInput, "CRD %s in %s cannot be read: %v", u.GetName(), path, err).From(err)
		}
		have[crd.Name] = true
		crds = append(crds, crd)
	}
	for _, crd := range own {
		if !have[crd.Name] {
			crds = append(crds, crd)
		}
	}
	slices.SortFunc(crds, func(a, b *apiextensionsv1.CustomResourceDefinition) int { return strings.Compare(a.Name, b.Name) })
	s.Kinds = kindsOf(crds)
	return s, nil
}

package lint

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manifest"
)

// reasonNoRelease is the reason when a folder has no releases.
const reasonNoRelease = "NoRelease"

// maxFileSize is the maximum size of a file in bytes.
const maxFileSize = 32 << 20

const (
	componentsSuffix = "-components.yaml"
	templatePrefix   = "cluster-template"
	classPrefix      = "clusterclass-"
)

// release is one version of a provider. [Dir] reads one from each folder, and lint passes it to the check of each rule.
type release struct {
	folder, label, version string
	files                  map[string][]byte // files with rules
	components             []string          // names of components files
	kind                   provider.Type     // from the name of the components file; empty: unknown
	objects                []objectInFile    // from all components files
}

// objectInFile is an object with its file. The rules check these objects, and report their file.
type objectInFile struct {
	file string
	*unstructured.Unstructured
}

func (l objectInFile) id() string { return l.GetKind() + "/" + l.GetName() }

func sprintf(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// Dir checks every release in a folder and its subfolders, for `slipway provider lint`. A folder LABEL/VERSION with
// metadata.yaml or a components file is a release. It returns the number of releases, and the findings sorted by
// release and file.
func Dir(dir string) (releases int, findings []Finding, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return 0, nil, err
	}
	if info, err := os.Stat(abs); err != nil || !info.IsDir() {
		return 0, nil, fault.New(fault.Invalid, reasonNoRelease, "%s is not a folder: specify the folder of a release, or a parent folder", dir).From(err)
	}
	root := os.DirFS(abs)
	folders, err := find(root)
	if err != nil {
		return 0, nil, fmt.Errorf("reading %s: %w", dir, err)
	}
	if len(folders) == 0 {
		return 0, nil, fault.New(fault.Invalid, reasonNoRelease,
			"%s contains no release: a release is a folder LABEL/VERSION with metadata.yaml and a file such as infrastructure-components.yaml", dir)
	}
	for _, folder := range folders {
		r, err := read(root, folder, abs)
		if err != nil {
			return 0, nil, err
		}
		findings = append(findings, lint(r)...)
	}
	return len(folders), findings, nil
}

// find returns the folders that contain a release, sorted.
func find(root fs.FS) ([]string, error) {
	var out []string
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() && (d.Name() == repository.MetadataFile || strings.HasSuffix(d.Name(), componentsSuffix)) {
			out = append(out, path.Dir(name))
		}
		return nil
	})
	slices.Sort(out)
	return slices.Compact(out), err
}

// read reads the files of one release. [Dir] calls it for each folder that find returns.
func read(root fs.FS, folder, abs string) (*release, error) {
	whole := filepath.Join(abs, filepath.FromSlash(folder))
	r := &release{folder: folder, version: filepath.Base(whole), label: filepath.Base(filepath.Dir(whole)), files: map[string][]byte{}}
	entries, err := fs.ReadDir(root, folder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := e.Name()
		if !isOfRelease(name) || !e.Type().IsRegular() {
			continue
		}
		if info, err := e.Info(); err != nil || info.Size() > maxFileSize {
			return nil, fault.New(fault.Invalid, "FileTooLarge", "%s is larger than %d MiB, the limit for a file of a release", name, maxFileSize>>20).From(err)
		}
		if r.files[name], err = fs.ReadFile(root, path.Join(folder, name)); err != nil {
			return nil, err
		}
		if strings.HasSuffix(name, componentsSuffix) {
			r.components = append(r.components, name)
		}
	}
	for _, name := range r.components {
		if t := typeOf(name); t != "" {
			r.kind = t
		}
		objects, err := r.read(name)
		if err != nil {
			continue // reported by the rules for the file
		}
		for _, o := range objects {
			r.objects = append(r.objects, objectInFile{name, o})
		}
	}
	return r, nil
}

func isOfRelease(name string) bool {
	return name == repository.MetadataFile || strings.HasSuffix(name, componentsSuffix) ||
		strings.HasSuffix(name, ".yaml") && (strings.HasPrefix(name, templatePrefix) || strings.HasPrefix(name, classPrefix))
}

func typeOf(components string) provider.Type {
	for _, t := range provider.Types() {
		if t.ComponentsFile() == components {
			return t
		}
	}
	return ""
}

// read returns the objects of a file. Variables without a default get a sample value. Rules call it for the files that
// they check.
func (r *release) read(name string) ([]*unstructured.Unstructured, error) {
	variables, err := repository.Envsubst{}.Variables(r.files[name])
	if err != nil {
		return nil, err
	}
	text, err := repository.Envsubst{}.Process(r.files[name], func(name string) (string, bool) {
		i := slices.IndexFunc(variables, func(v repository.Variable) bool { return v.Name == name })
		if i >= 0 && variables[i].Default != nil {
			return "", false
		}
		return sample(name), true
	})
	if err != nil {
		return nil, err
	}
	return manifest.Objects(text)
}

// sample returns a sample value for a variable. Well-known variables of templates get a value of a suitable type.
func sample(name string) string {
	switch {
	case strings.HasSuffix(name, "_COUNT"):
		return "1"
	case name == "KUBERNETES_VERSION":
		return "v1.36.3"
	case strings.HasSuffix(name, "_B64ENCODED"):
		return "c2FtcGxl"
	}
	return strings.ToLower(strings.ReplaceAll(name, "_", "-"))
}

// names returns the names of the files with a prefix, sorted. Rules select the files of a release with it.
func (r *release) names(prefix string) []string {
	var out []string
	for name := range r.files {
		if strings.HasPrefix(name, prefix) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

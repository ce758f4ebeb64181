package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk"
)

//go:embed all:project all:hooks
var templates embed.FS

// vendored is the path of the SDK source in the project. The projects of earlier versions have it in their go.mod,
// where [Update] expects it, so it must not change.
const vendored = "third_party/slipway-sdk"

// Options are the options of a new project, from the flags of `slipway extension init`.
type Options struct {
	// Dir is created with its parents; it must be empty or absent.
	Dir string
	// Name is the name of the extension, a DNS label.
	Name string
	// Module is the path of the Go module.
	Module string
	// SDK, if set, is a folder with the SDK source to use instead of the embedded one.
	SDK string
	// Hooks are the hooks that the extension handles; default: BeforeClusterCreate and GeneratePatches.
	Hooks []string
}

// project is the input of the project templates, which use its fields and methods.
type project struct {
	Options
	Handlers []Handler
}

// Write writes the project and returns the sorted paths of its own files, without the SDK. `slipway extension init`
// calls it.
func Write(o Options) ([]string, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	handlers, err := o.Handlers()
	if err != nil {
		return nil, err
	}
	files, err := render(project{o, handlers})
	if err != nil {
		return nil, err
	}
	if err := o.addHandlers(files, handlers); err != nil {
		return nil, err
	}
	if err := modules(o, files); err != nil {
		return nil, err
	}
	own := names(files)
	if o.SDK == "" {
		if err := source(files); err != nil {
			return nil, err
		}
	}
	for _, name := range names(files) {
		path := filepath.Join(o.Dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, fmt.Errorf("making the folder of %s: %w", name, err)
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil {
			return nil, fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return own, nil
}

// check validates the options. The folder must be empty, so that no file is overwritten.
func (o Options) check() error {
	if p := validation.IsDNS1123Label(o.Name); len(p) > 0 {
		return fault.New(fault.Invalid, "ExtensionName", "the name %q of the extension cannot be used: %s", o.Name, strings.Join(p, "; "))
	}
	if err := module.CheckImportPath(o.Module); err != nil {
		return fault.New(fault.Invalid, "ModulePath", "the module path %q cannot be used", o.Module).From(err)
	}
	if o.SDK != "" {
		if _, err := os.Stat(filepath.Join(o.SDK, "go.mod")); err != nil {
			return fault.New(fault.Invalid, "SDK", "%s does not hold the source of the SDK: it has no go.mod", o.SDK).From(err)
		}
	}
	entries, err := os.ReadDir(o.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fault.New(fault.Invalid, "Folder", "the folder %s cannot be used", o.Dir).From(err)
	case len(entries) > 0:
		return fault.New(fault.Invalid, "Folder", "the folder %s is not empty; name another with --dir", o.Dir)
	}
	return nil
}

// render executes the project templates. Their names end with .tmpl, so that Go files among them do not become part of
// Slipway.
func render(p project) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(templates, "project", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fill(path, p)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(path, "project/"), ".tmpl")
		if strings.HasSuffix(name, "ignore") {
			name = "." + name // under its own name it would apply to this repository
		}
		files[name] = text
		return nil
	})
	return files, err
}

// fill executes one template.
func fill(path string, with any) ([]byte, error) {
	text, err := templates.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t, err := template.New(path).Delims("[[", "]]").Option("missingkey=error").Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("reading the template %s: %w", path, err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, with); err != nil {
		return nil, fmt.Errorf("filling in the template %s: %w", path, err)
	}
	return out.Bytes(), nil
}

// modules adds go.mod and go.sum with the requirements of the SDK, in the versions it was tested with.
func modules(o Options, files map[string][]byte) error {
	from := fs.FS(sdk.Source())
	replacement := "./" + vendored
	if o.SDK != "" {
		from = os.DirFS(o.SDK)
		abs, err := filepath.Abs(o.SDK)
		if err != nil {
			return err
		}
		replacement = abs
	}
	data, err := fs.ReadFile(from, "go.mod")
	if err != nil {
		return fmt.Errorf("reading the requirements of the SDK: %w", err)
	}
	theirs, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		return fmt.Errorf("reading the requirements of the SDK: %w", err)
	}
	own := &modfile.File{}
	if err := errors.Join(own.AddModuleStmt(o.Module), own.AddGoStmt(theirs.Go.Version)); err != nil {
		return fmt.Errorf("writing go.mod: %w", err)
	}
	own.AddNewRequire(sdk.Module, "v0.0.0", false)
	for _, r := range theirs.Require {
		own.AddNewRequire(r.Mod.Path, r.Mod.Version, r.Mod.Path != "sigs.k8s.io/cluster-api/api")
	}
	if err := own.AddReplace(sdk.Module, "", replacement, ""); err != nil {
		return fmt.Errorf("writing go.mod: %w", err)
	}
	own.SetRequireSeparateIndirect(slices.Clone(own.Require))
	own.Cleanup()
	if files["go.mod"], err = own.Format(); err != nil {
		return fmt.Errorf("writing go.mod: %w", err)
	}
	if files["go.sum"], err = fs.ReadFile(from, "go.sum"); err != nil {
		return fmt.Errorf("reading the checksums of the SDK: %w", err)
	}
	return nil
}

// source adds the SDK source without its tests.
func source(files map[string][]byte) error {
	from := sdk.Source()
	return fs.WalkDir(from, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/testdata/") {
			return err
		}
		data, err := from.ReadFile(path)
		if err != nil {
			return err
		}
		files[vendored+"/"+path] = data
		return nil
	})
}

func names(files map[string][]byte) []string {
	out := make([]string, 0, len(files))
	for name := range files {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

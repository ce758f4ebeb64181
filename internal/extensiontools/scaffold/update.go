package scaffold

import (
	"errors"
	"fmt"
	goversion "go/version"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/version"
	"github.com/slipwayhq/slipway/sdk"
)

// UpdateResult is the result of an SDK update. `slipway extension update` prints it.
type UpdateResult struct {
	// Added, Changed and Removed count files of the SDK.
	Added, Changed, Removed int
	// Modules are the upgraded requirements of the project, as "path version", sorted.
	Modules []string
}

// IsEmpty reports whether the project already had the SDK of this binary.
func (u UpdateResult) IsEmpty() bool {
	return u.Added+u.Changed+u.Removed == 0 && len(u.Modules) == 0
}

// Update replaces the SDK in a project created by Write with the SDK in this binary, and upgrades the project's
// requirements to the versions that the SDK was tested with. `slipway extension update` calls it. It changes go.mod,
// go.sum and the folder of the SDK only, and can be repeated after an interruption.
func Update(dir string) (UpdateResult, error) {
	path := filepath.Join(dir, "go.mod")
	data, err := os.ReadFile(path)
	if err != nil {
		return UpdateResult{}, fault.New(fault.Invalid, "Project", "%s is not the folder of an extension: it has no go.mod", dir).From(err)
	}
	own, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		return UpdateResult{}, fault.New(fault.Invalid, "Project", "go.mod cannot be read").From(err)
	}
	if !vendors(own) {
		return UpdateResult{}, fault.New(fault.Invalid, "Project", "%s does not build with the SDK in %s: go.mod does not replace %s with it", dir, vendored, sdk.Module)
	}
	files := map[string][]byte{}
	if err := source(files); err != nil {
		return UpdateResult{}, err
	}
	var u UpdateResult
	if u.Modules, err = upgradeRequirements(own); err != nil {
		return u, err
	}
	own.Cleanup()
	if files["go.mod"], err = own.Format(); err != nil {
		return u, fmt.Errorf("writing go.mod: %w", err)
	}
	if files["go.sum"], err = sums(filepath.Join(dir, "go.sum")); err != nil {
		return u, err
	}
	err = u.write(dir, files)
	return u, err
}

// vendors reports whether the project uses the SDK source in the project.
func vendors(f *modfile.File) bool {
	return slices.ContainsFunc(f.Replace, func(r *modfile.Replace) bool {
		return r.Old.Path == sdk.Module && filepath.ToSlash(filepath.Clean(r.New.Path)) == vendored
	})
}

// upgradeRequirements upgrades the requirements of a project to the SDK's versions, and returns the upgraded ones.
func upgradeRequirements(own *modfile.File) ([]string, error) {
	data, err := fs.ReadFile(sdk.Source(), "go.mod")
	if err != nil {
		return nil, fmt.Errorf("reading the requirements of the SDK: %w", err)
	}
	theirs, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the requirements of the SDK: %w", err)
	}
	required := map[string]string{}
	for _, r := range own.Require {
		required[r.Mod.Path] = r.Mod.Version
	}
	var raised []string
	for _, r := range theirs.Require {
		has, known := required[r.Mod.Path]
		switch {
		case known && !version.IsOlder(has, r.Mod.Version):
			continue
		case known:
			err = own.AddRequire(r.Mod.Path, r.Mod.Version)
		default:
			own.AddNewRequire(r.Mod.Path, r.Mod.Version, true)
		}
		if err != nil {
			return nil, fmt.Errorf("writing go.mod: %w", err)
		}
		raised = append(raised, r.Mod.Path+" "+r.Mod.Version)
	}
	if own.Go == nil || goversion.Compare("go"+own.Go.Version, "go"+theirs.Go.Version) < 0 {
		if err := own.AddGoStmt(theirs.Go.Version); err != nil {
			return nil, fmt.Errorf("writing go.mod: %w", err)
		}
		raised = append(raised, "go "+theirs.Go.Version)
	}
	slices.Sort(raised)
	return raised, nil
}

// sums merges the checksums of the project and the SDK.
func sums(path string) ([]byte, error) {
	own, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading go.sum: %w", err)
	}
	theirs, err := fs.ReadFile(sdk.Source(), "go.sum")
	if err != nil {
		return nil, fmt.Errorf("reading the checksums of the SDK: %w", err)
	}
	lines := slices.Concat(strings.Split(string(own), "\n"), strings.Split(string(theirs), "\n"))
	slices.Sort(lines)
	lines = slices.DeleteFunc(slices.Compact(lines), func(l string) bool { return l == "" })
	return []byte(strings.Join(lines, "\n") + "\n"), nil
}

// write writes changed files, and removes files that are no longer part of the SDK.
func (u *UpdateResult) write(dir string, files map[string][]byte) error {
	for _, name := range names(files) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		before, err := os.ReadFile(path)
		switch {
		case err == nil && string(before) == string(files[name]):
			continue
		case !strings.HasPrefix(name, vendored+"/"):
		case err == nil:
			u.Changed++
		default:
			u.Added++
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("making the folder of %s: %w", name, err)
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	root := filepath.Join(dir, filepath.FromSlash(vendored))
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		below, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if _, stays := files[filepath.ToSlash(below)]; stays {
			return nil
		}
		u.Removed++
		return os.Remove(path)
	})
}

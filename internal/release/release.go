package release

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"

	"github.com/slipwayhq/slipway/internal/fault"
)

// programFolder is the folder of a release, next to the folders of the providers, with the files that belong to no
// provider.
const programFolder = "slipway"

// Config contains the options of a release. All fields are required. hack/release fills it.
type Config struct {
	// Dir is the target directory.
	Dir string
	// Version is a semantic version with a leading "v".
	Version string
	// Image of the manager, without a tag.
	Image string
	// Binary is the path of the program.
	Binary string
	// Sources is the root directory of the repository.
	Sources fs.FS
	// Time is the time of the commit.
	Time time.Time
}

// Write writes the release and replaces an earlier one of the same version. `make release` (hack/release) calls it, and
// the benchmark of `slipway init`.
func Write(ctx context.Context, c Config) error {
	version, err := semver.Parse(strings.TrimPrefix(c.Version, "v"))
	if err != nil || c.Version != "v"+version.String() {
		return fault.New(fault.Invalid, "InvalidVersion", "version %q cannot be released: it must be a semantic version with a leading v, for example v0.1.0", c.Version)
	}
	w := &writer{dir: c.Dir}
	licence, err := fs.ReadFile(c.Sources, "LICENSE")
	if err != nil {
		return fmt.Errorf("reading the licence: %w", err)
	}
	program, err := readArtifact(c.Binary, c.Version, c.Time, licence)
	if err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return w.repositories(c, version) },
		func() error { return w.program(c, program) },
	} {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := step(); err != nil {
			return err
		}
	}
	return w.checksums(path.Join(programFolder, c.Version))
}

// program writes the files that belong to no provider. The names of the files are those that users download.
func (w *writer) program(c Config, p program) error {
	folder := path.Join(programFolder, c.Version)
	if err := w.begin(folder); err != nil {
		return err
	}
	system, architecture := p.Platform()
	name := fmt.Sprintf("slipway_%s_%s_%s", strings.TrimPrefix(c.Version, "v"), system, architecture)
	for file, write := range map[string]func(io.Writer) error{
		name + ".tar.gz":   p.Archive,
		name + ".cdx.json": p.Materials,
		fmt.Sprintf("slipway_%s_%s.deb", strings.TrimPrefix(c.Version, "v"), architecture): p.Debian,
	} {
		var content bytes.Buffer
		if err := write(&content); err != nil {
			return err
		}
		if err := w.write(path.Join(folder, file), content.Bytes()); err != nil {
			return err
		}
	}
	together, err := managerObjects(componentOptions{Version: c.Version, Image: c.Image})
	if err != nil {
		return err
	}
	manifest, err := ComponentsYAML(together)
	if err != nil {
		return err
	}
	if err := w.write(path.Join(folder, "manager.yaml"), withDefaults(manifest)); err != nil {
		return err
	}
	return w.image(path.Join(folder, "image"), p, c.Image+":"+c.Version)
}

// image writes the image layout and records its files.
func (w *writer) image(folder string, p program, reference string) error {
	dir := filepath.Join(w.dir, filepath.FromSlash(folder))
	if err := p.Image(dir, reference); err != nil {
		return err
	}
	return fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			w.files = append(w.files, path.Join(folder, name))
		}
		return err
	})
}

// writer writes the files of one release below a directory and records their names for the checksums. [Write] creates
// one; its methods for the repositories of providers are in repository.go.
type writer struct {
	dir   string
	files []string
}

// begin creates an empty directory.
func (w *writer) begin(folder string) error {
	dir := filepath.Join(w.dir, filepath.FromSlash(folder))
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing an earlier release: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making a folder of the release: %w", err)
	}
	return nil
}

func (w *writer) write(name string, content []byte) error {
	if err := os.WriteFile(filepath.Join(w.dir, filepath.FromSlash(name)), content, 0o644); err != nil { //nolint:gosec // it is published
		return fmt.Errorf("writing the release: %w", err)
	}
	w.files = append(w.files, name)
	return nil
}

// checksums writes the checksums of all written files, for `sha256sum --check` in the release directory.
func (w *writer) checksums(folder string) error {
	var out bytes.Buffer
	slices.Sort(w.files)
	for _, name := range w.files {
		sum, err := checksum(filepath.Join(w.dir, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%x  %s\n", sum, name)
	}
	return w.write(path.Join(folder, "SHA256SUMS"), out.Bytes())
}

func checksum(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("reading what was written: %w", err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return nil, fmt.Errorf("reading what was written: %w", err)
	}
	return sum.Sum(nil), nil
}

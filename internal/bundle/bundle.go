package bundle

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/version"
)

// Reasons of the faults of this package.
const (
	// ReasonInvalid means that a bundle is damaged or no bundle; the kind is Invalid.
	ReasonInvalid = "InvalidBundle"
	// reasonMissing means that there is no bundle for a version and architecture; the kind is Invalid.
	reasonMissing = "BundleMissing"
)

const (
	// format of the manifest.
	format       = 1
	manifestName = "manifest.json"
	// Limits of a manifest, in bytes and files.
	maxManifest = 1 << 20
	maxFiles    = 2000
	maxFileSize = 8 << 30
	// roleControlPlane marks files that only control planes need.
	roleControlPlane = "control-plane"
)

// File is a file of a bundle. [Manifest] lists the files of a bundle.
type File struct {
	// Path is relative, with slashes.
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// Executable files have the mode 0755, others 0644.
	Executable bool `json:"executable,omitempty"`
	// Role is "control-plane" for files that only control planes need.
	Role string `json:"role,omitempty"`
}

// Manifest describes a bundle. It is stored in the bundle as manifest.json, so an incompatible change needs another
// format number. [Store.Build] writes it, and [Open] reads it.
type Manifest struct {
	Format            int    `json:"format"`
	KubernetesVersion string `json:"kubernetesVersion"`
	Architecture      string `json:"architecture"`
	// PauseImage is the name of the image of a Pod's sandbox.
	PauseImage string `json:"pauseImage"`
	Files      []File `json:"files"`
}

// Bundle is a directory with everything that turns a Linux host into a Kubernetes node, for one version and
// architecture. `slipway bundle` builds, exports and imports it, and the SSHMachine controller installs it on hosts
// (package ssh/remote).
type Bundle struct {
	Dir string
	Manifest
	// Digest identifies the content: the SHA-256 of [Bundle.Sums].
	Digest string
}

// Sums returns the checksums of the files in the format of sha256sum, sorted by path. Hosts check that the SHA-256 of
// these lines is the digest (ssh/remote/scripts/bundle-finish.sh). They store the bundle in a directory of that name,
// so the form must not change.
func (b Bundle) Sums() []byte {
	var out strings.Builder
	for _, f := range b.Files {
		out.WriteString(f.SHA256 + "  " + f.Path + "\n")
	}
	return []byte(out.String())
}

// Size returns the size of all files in bytes.
func (b Bundle) Size() (n int64) {
	for _, f := range b.Files {
		n += f.Size
	}
	return n
}

// ForNode returns the part of a bundle that a node needs: all of it for a control plane, else without the images of
// control planes. It has a digest of its own. Each host stores one of the two parts under its digest. The SSHMachine
// controller calls it for each Machine. Package ssh finds the version of the bundle on a host by this digest.
func (b Bundle) ForNode(controlPlane bool) Bundle {
	if controlPlane {
		return b
	}
	b.Files = slices.DeleteFunc(slices.Clone(b.Files), func(f File) bool { return f.Role == roleControlPlane })
	return withDigest(b)
}

// Open opens a file of the bundle. Exports and uploads to hosts read files with it.
func (b Bundle) Open(f File) (*os.File, error) {
	return os.Open(filepath.Join(b.Dir, filepath.FromSlash(f.Path)))
}

func withDigest(b Bundle) Bundle {
	sum := sha256.Sum256(b.Sums())
	b.Digest = hex.EncodeToString(sum[:])
	return b
}

// Open reads the manifest of a bundle in a directory and checks that the files have the right sizes. It does not read
// their content: [Bundle.Export] and [Store.Import] verify it, and each host does after the upload. [Store.List] and
// [Store.Find] call it, and builds and imports for the bundle that they have written.
func Open(dir string) (Bundle, error) {
	f, err := os.Open(filepath.Join(dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return Bundle{}, fault.New(fault.Invalid, ReasonInvalid, "%s contains no bundle: %s is missing", dir, manifestName)
	}
	if err != nil {
		return Bundle{}, fmt.Errorf("reading a bundle: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err != nil {
		return Bundle{}, fmt.Errorf("reading a bundle: %w", err)
	}
	m, err := parseManifest(text)
	if err != nil {
		return Bundle{}, err
	}
	b := withDigest(Bundle{Dir: dir, Manifest: m})
	for _, f := range b.Files {
		info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(f.Path)))
		if err != nil || !info.Mode().IsRegular() || info.Size() != f.Size {
			return Bundle{}, fault.New(fault.Invalid, ReasonInvalid, "the bundle in %s is incomplete: %s is missing or has another size; import or build it again", dir, f.Path).From(err)
		}
	}
	return b, nil
}

// sha256Form, architectureForm, imageForm and pathForm match fields of a manifest. Scripts on hosts read these as
// fields of a line, so they contain no spaces.
var (
	sha256Form       = regexp.MustCompile(`^[0-9a-f]{64}$`)
	architectureForm = regexp.MustCompile(`^[a-z0-9]{1,16}$`)
	imageForm        = regexp.MustCompile(`^[a-z0-9][a-z0-9.:/_-]{0,127}$`)
	pathForm         = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+/-]{0,199}$`)
)

// parseManifest parses a manifest and validates every field, because paths become paths on hosts. Errors are faults of
// kind Invalid.
func parseManifest(text []byte) (Manifest, error) {
	var m Manifest
	if len(text) > maxManifest {
		return m, invalid("the manifest is larger than %d bytes", maxManifest)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, invalid("the manifest cannot be parsed").From(err)
	}
	switch {
	case m.Format != format:
		return m, invalid("the manifest has format %d, but this version of Slipway reads format %d", m.Format, format)
	case !version.Valid(m.KubernetesVersion):
		return m, invalid("%.40q is not a Kubernetes version", m.KubernetesVersion)
	case !architectureForm.MatchString(m.Architecture):
		return m, invalid("%.40q is not an architecture", m.Architecture)
	case !imageForm.MatchString(m.PauseImage):
		return m, invalid("%.40q is not the name of an image", m.PauseImage)
	case len(m.Files) == 0 || len(m.Files) > maxFiles:
		return m, invalid("the manifest has %d files, allowed are 1 to %d", len(m.Files), maxFiles)
	}
	for _, f := range m.Files {
		if err := f.check(); err != nil {
			return m, err
		}
	}
	slices.SortFunc(m.Files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	for i, f := range m.Files[1:] {
		if f.Path == m.Files[i].Path || strings.HasPrefix(f.Path, m.Files[i].Path+"/") {
			return m, invalid("the manifest has two files at %s", f.Path)
		}
	}
	return m, nil
}

// check validates a file. The first directory is one of the known ones, so that no file of a bundle can replace the
// files that Slipway writes beside it on a host.
func (f File) check() error {
	top, _, nested := strings.Cut(f.Path, "/")
	switch {
	case !pathForm.MatchString(f.Path) || path.Clean(f.Path) != f.Path || !nested || !slices.Contains([]string{"bin", "cni", "lib", "images"}, top):
		return invalid("%.80q is not a path in a bundle", f.Path)
	case f.Size < 0 || f.Size > maxFileSize:
		return invalid("%s has the size %d", f.Path, f.Size)
	case !sha256Form.MatchString(f.SHA256):
		return invalid("%s has no SHA-256", f.Path)
	case f.Role != "" && f.Role != roleControlPlane:
		return invalid("%s has the unknown role %.40q", f.Path, f.Role)
	}
	return nil
}

func hashOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}

// Verify checks the content of the files. The SSH provider calls it for a file that arrived damaged on a host.
func (b Bundle) Verify() error {
	for _, f := range b.Files {
		sum, err := hashOf(filepath.Join(b.Dir, filepath.FromSlash(f.Path)))
		if err != nil {
			return fmt.Errorf("verifying a bundle: %w", err)
		}
		if sum != f.SHA256 {
			return invalid("%s does not have the content that the manifest names; import or build the bundle again", f.Path)
		}
	}
	return nil
}

// describe returns the manifest for the files in a directory. [Store.Build] calls it. It parses its own result, so that
// Build fails for a bundle that Import would reject.
func describe(dir string, m Manifest) (Manifest, error) {
	m.Format, m.Files = format, nil
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == manifestName && filepath.Dir(file) == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		sum, err := hashOf(file)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, file)
		f := File{Path: filepath.ToSlash(rel), Size: info.Size(), SHA256: sum, Executable: info.Mode()&0o100 != 0}
		if f.Path == controlPlaneImages {
			f.Role = roleControlPlane
		}
		m.Files = append(m.Files, f)
		return err
	})
	if err != nil {
		return m, fmt.Errorf("reading the files of a bundle: %w", err)
	}
	text, err := json.Marshal(m)
	if err != nil {
		return m, err
	}
	return parseManifest(text)
}

// writeManifest writes the manifest of a bundle. [Store.Build] and [Store.Import] call it at their end, so that an
// incomplete directory is no bundle.
func writeManifest(dir string, m Manifest) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, manifestName), append(text, '\n'), 0o644)
}

func invalid(message string, args ...any) *fault.Fault {
	return fault.New(fault.Invalid, ReasonInvalid, message, args...)
}

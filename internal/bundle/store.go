package bundle

import (
	"archive/tar"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/version"
)

// draftPrefix begins the names of directories of bundles that are being written.
const draftPrefix = ".draft-"

// Store is a directory with a bundle in each subdirectory. A bundle contains the programs and container images that
// turn a Linux host into a node of one Kubernetes version. `slipway bundle` changes the store, and the SSH provider
// only reads it. A directory is replaced as a whole, never changed.
type Store struct{ Dir string }

// name returns the name of a bundle's directory.
func (m Manifest) name() string { return m.KubernetesVersion + "-" + m.Architecture }

// List returns the bundles, newest version first. Directories that contain no valid bundle are returned as problems.
// `slipway bundle list` and the SSH provider call it.
func (s Store) List() (bundles []Bundle, problems []error, err error) {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("listing bundles: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		b, err := Open(filepath.Join(s.Dir, e.Name()))
		if err != nil {
			problems = append(problems, err)
			continue
		}
		bundles = append(bundles, b)
	}
	slices.SortFunc(bundles, func(a, b Bundle) int {
		switch {
		case version.IsOlder(b.KubernetesVersion, a.KubernetesVersion):
			return -1
		case version.IsOlder(a.KubernetesVersion, b.KubernetesVersion):
			return 1
		}
		return cmp.Compare(a.Architecture, b.Architecture)
	})
	return bundles, problems, nil
}

// Find returns the bundle for a version and an architecture, or a fault of kind Invalid with reason BundleMissing.
// `slipway bundle export` and `slipway bundle remove` call it, and the SSHMachine controller for each Machine.
func (s Store) Find(kubernetesVersion, architecture string) (Bundle, error) {
	m := Manifest{KubernetesVersion: kubernetesVersion, Architecture: architecture}
	if !version.Valid(kubernetesVersion) || !architectureForm.MatchString(architecture) {
		return Bundle{}, fault.New(fault.Invalid, reasonMissing, "there is no bundle for Kubernetes %.40q on %.40q", kubernetesVersion, architecture)
	}
	dir := filepath.Join(s.Dir, m.name())
	if _, err := os.Stat(filepath.Join(dir, manifestName)); errors.Is(err, fs.ErrNotExist) {
		return Bundle{}, fault.New(fault.Invalid, reasonMissing,
			"there is no bundle for Kubernetes %s on %s; build it with \"slipway bundle build %[1]s\", or import it with \"slipway bundle import FILE\"", kubernetesVersion, architecture)
	}
	return Open(dir)
}

// Remove deletes the bundle for a version and an architecture. `slipway bundle remove` calls it.
func (s Store) Remove(b Bundle) error { return os.RemoveAll(filepath.Join(s.Dir, b.name())) }

// place creates a bundle with a function that writes its files and manifest to a directory. The bundle appears in the
// store when it is complete, and replaces the one for the same version, which is there until then.
func (s Store) place(write func(dir string) error) (Bundle, error) {
	draft, remove, err := s.newDraft()
	if err != nil {
		return Bundle{}, fmt.Errorf("creating a bundle: %w", err)
	}
	defer remove()
	if err := write(draft); err != nil {
		return Bundle{}, err
	}
	b, err := Open(draft)
	if err != nil {
		return Bundle{}, err
	}
	unlock, err := s.lock()
	if err != nil {
		return Bundle{}, err
	}
	defer unlock()
	to := filepath.Join(s.Dir, b.name())
	if err := replace(draft, to); err != nil {
		return Bundle{}, err
	}
	b.Dir = to
	return b, nil
}

// replace renames a directory. If there is one of the new name, both exchange their names, so that there always is one.
func replace(from, to string) error {
	if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
		return os.Rename(from, to)
	}
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	// The file system cannot exchange names. The previous directory is deleted with the draft.
	if err := os.Rename(to, from+".previous"); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// lock waits until no other process changes the names in the store, which takes a moment, and returns the function that
// unlocks it.
func (s Store) lock() (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(s.Dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking the directory of bundles: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("locking the directory of bundles: %w", err)
	}
	return func() { _ = f.Close() }, nil
}

// draftLock is the file in the directory of a draft that is locked while a process writes the draft.
const draftLock = "lock"

// newDraft creates a directory for a bundle, and deletes those of processes that were killed. The returned function
// deletes the draft.
func (s Store) newDraft() (dir string, remove func(), err error) {
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return "", nil, err
	}
	unlock, err := s.lock()
	if err != nil {
		return "", nil, err
	}
	defer unlock()
	old, err := filepath.Glob(filepath.Join(s.Dir, draftPrefix+"*"))
	for _, o := range old {
		err = errors.Join(err, removeAbandoned(o))
	}
	if err != nil {
		return "", nil, err
	}
	draft, err := os.MkdirTemp(s.Dir, draftPrefix)
	if err != nil {
		return "", nil, err
	}
	dir = filepath.Join(draft, "bundle")
	f, err := os.OpenFile(filepath.Join(draft, draftLock), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX); err == nil {
			err = os.Mkdir(dir, 0o755)
		}
	}
	remove = func() {
		_ = os.RemoveAll(draft)
		_ = f.Close()
	}
	if err != nil {
		remove()
	}
	return dir, remove, err
}

// removeAbandoned deletes a draft that no process writes.
func removeAbandoned(draft string) error {
	f, err := os.OpenFile(filepath.Join(draft, draftLock), os.O_RDWR, 0)
	if err == nil {
		defer f.Close()
		if errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK) {
			return nil
		}
	}
	return os.RemoveAll(draft)
}

// Export writes a bundle as an uncompressed tar archive, and verifies every file. The manifest comes first. `slipway
// bundle export` calls it.
func (b Bundle) Export(w io.Writer) error {
	out := tar.NewWriter(w)
	for _, name := range append([]File{{Path: manifestName}}, b.Files...) {
		if err := b.exportFile(out, name); err != nil {
			return fmt.Errorf("exporting %s: %w", name.Path, err)
		}
	}
	return out.Close()
}

func (b Bundle) exportFile(out *tar.Writer, file File) error {
	f, err := b.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: file.Path, Size: info.Size(), Mode: file.mode(), ModTime: time.Unix(0, 0)}); err != nil {
		return err
	}
	h := sha256.New()
	if _, err = io.Copy(out, io.TeeReader(f, h)); err == nil && hex.EncodeToString(h.Sum(nil)) != file.SHA256 && file.Path != manifestName {
		return invalid("the file does not have the content that the manifest names; import or build the bundle again")
	}
	return err
}

func (f File) mode() int64 {
	if f.Executable {
		return 0o755
	}
	return 0o644
}

// Import reads an exported bundle, verifies every file, and stores it. An invalid archive is a fault of kind Invalid
// and leaves the store unchanged. `slipway bundle import` calls it.
func (s Store) Import(r io.Reader) (Bundle, error) {
	return s.place(func(dir string) error {
		in := tar.NewReader(r)
		m, err := readManifestEntry(in)
		if err != nil {
			return err
		}
		for _, f := range m.Files {
			if err := importFile(in, dir, f); err != nil {
				return err
			}
		}
		if _, err := in.Next(); err != io.EOF {
			return invalid("the archive contains more files than its manifest").From(err)
		}
		return writeManifest(dir, m)
	})
}

func readManifestEntry(in *tar.Reader) (Manifest, error) {
	h, err := in.Next()
	if err != nil || h.Name != manifestName || h.Size > maxManifest {
		return Manifest{}, invalid("the archive is not an exported bundle; \"slipway bundle export\" writes one").From(err)
	}
	text, err := io.ReadAll(io.LimitReader(in, maxManifest+1))
	if err != nil {
		return Manifest{}, invalid("the archive is damaged").From(err)
	}
	return parseManifest(text)
}

func importFile(in *tar.Reader, dir string, f File) error {
	h, err := in.Next()
	if err != nil || h.Typeflag != tar.TypeReg || h.Name != f.Path || h.Size != f.Size {
		return invalid("the archive is damaged: %s is missing or has another size", f.Path).From(err)
	}
	to := filepath.Join(dir, filepath.FromSlash(f.Path))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fs.FileMode(f.mode()))
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		return invalid("the archive is damaged: %s cannot be read", f.Path).From(err)
	}
	if err := out.Close(); err != nil {
		return err
	}
	sum, err := hashOf(to)
	if err == nil && sum != f.SHA256 {
		return invalid("the archive is damaged: %s does not have the content that the manifest names", f.Path)
	}
	return err
}

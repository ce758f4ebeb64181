package versions

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/version"
)

// Builder builds the program of a release for [Store.Add]; [Compiler] implements it.
type Builder interface {
	// Build returns the path of the program, and the version of Go that compiled it.
	Build(ctx context.Context, version string) (file, compiler string, err error)
}

// oldestMinor is the oldest minor version of Kubernetes 1 that can be added. The newest is one minor version after the
// included release.
const oldestMinor = 33

// Normalize returns the version with a leading v, which is optional in the input. Commands call it for their arguments.
func Normalize(v string) string { return "v" + strings.TrimPrefix(v, "v") }

// Check returns the normalized version, or a fault if it cannot be added. Commands that create or upgrade a cluster
// call it for the remedy in their error.
func (s Store) Check(v string) (string, error) {
	v = Normalize(v)
	asked, err := version.Parse(v)
	if err != nil || !version.Valid(v) {
		return "", fault.New(fault.Invalid, reasonVersion, "%q is not a Kubernetes version; write it like %s", v, s.Included)
	}
	newest := oldestMinor
	if own, err := version.Parse(s.Included); err == nil {
		newest = int(own.Minor) + 1
	}
	if asked.Major != 1 || int(asked.Minor) < oldestMinor || int(asked.Minor) > newest {
		return "", fault.New(fault.Invalid, reasonVersion, "this release of slipway can run Kubernetes v1.%d to v1.%d, and not %s", oldestMinor, newest, v)
	}
	return v, nil
}

// Add adds a release; `slipway versions add` calls it. If the host already has it, added is false. A process that is
// killed leaves no partial release, and the next one resumes with the builder's cached results.
func (s Store) Add(ctx context.Context, v string, b Builder) (r Release, added bool, err error) {
	if v, err = s.Check(v); err != nil {
		return r, false, err
	}
	if v == s.Included {
		return Release{Version: v, Included: true}, false, nil
	}
	unlock, err := s.lock()
	if err != nil {
		return r, false, err
	}
	defer unlock()
	if m, err := s.read(v); err == nil {
		return releaseOf(m), false, nil
	}
	file, compiler, err := b.Build(ctx, v)
	if err != nil {
		return r, false, s.diskFull(err)
	}
	program, err := os.Open(file)
	if err != nil {
		return r, false, err
	}
	defer func() { _ = program.Close() }()
	d, err := s.newDraft()
	if err != nil {
		return r, false, s.diskFull(err)
	}
	defer d.remove()
	m := manifest{Format: format, Kubernetes: v, Platform: platform(), Protocol: s.Protocol, Slipway: s.Slipway, Go: compiler, Added: s.Now().UTC()}
	if m.Program, m.Size, err = d.write(program); err != nil {
		return r, false, s.diskFull(err)
	}
	if err := d.publish(m); err != nil {
		return r, false, s.diskFull(err)
	}
	return releaseOf(m), true, nil
}

func releaseOf(m manifest) Release {
	return Release{Version: m.Kubernetes, Size: m.Size, Added: m.Added}
}

// draft is the directory of a release that is being created.
type draft struct {
	store Store
	dir   string
}

func (s Store) newDraft() (draft, error) {
	dir, err := os.MkdirTemp(s.Dir, draftPrefix)
	return draft{store: s, dir: dir}, err
}

func (d draft) remove() { _ = os.RemoveAll(d.dir) }

// write writes the program and returns its checksum and size.
func (d draft) write(r io.Reader) (sum string, size int64, err error) {
	f, err := os.OpenFile(filepath.Join(d.dir, programFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o500)
	if err != nil {
		return "", 0, err
	}
	size, err = io.Copy(f, r)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return "", 0, fmt.Errorf("write the program: %w", err)
	}
	sum, err = checksum(f.Name())
	return sum, size, err
}

// publish writes the manifest and renames the directory to its final name. An unusable release of that version is
// replaced.
func (d draft) publish(m manifest) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(d.dir, manifestFile), append(text, '\n'), 0o400); err != nil {
		return err
	}
	if err := os.Chmod(d.dir, 0o700); err != nil {
		return err
	}
	final := d.store.folder(m.Kubernetes)
	if _, err := os.Stat(final); err == nil {
		if err := d.store.discard(final); err != nil {
			return err
		}
	}
	for _, name := range []string{filepath.Join(d.dir, manifestFile), d.dir} {
		if err := syncFile(name); err != nil {
			return err
		}
	}
	if err := os.Rename(d.dir, final); err != nil {
		return err
	}
	return syncFile(d.store.Dir)
}

// syncFile flushes a file or a directory to disk.
func syncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return f.Sync()
}

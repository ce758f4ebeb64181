package releases

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Export writes an added release as an archive that Import reads: a tar file, compressed with gzip, with the manifest and the
// program. Two exports of a release are the same bytes.
func (s Store) Export(v string, w io.Writer) error {
	if v == s.Included {
		return fault.New(fault.Invalid, ReasonVersion, "Kubernetes %s is included in this build of slipway: copy the program slipway itself", v)
	}
	if _, err := s.Program(v); err != nil {
		return err
	}
	compressed := gzip.NewWriter(w)
	archive := tar.NewWriter(compressed)
	for _, name := range []string{manifestFile, programFile} {
		if err := s.append(archive, filepath.Join(s.folder(v), name)); err != nil {
			return fmt.Errorf("export Kubernetes %s: %w", v, s.diskFull(err))
		}
	}
	return s.diskFull(errors.Join(archive.Close(), compressed.Close()))
}

func (s Store) append(archive *tar.Writer, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	err = archive.WriteHeader(&tar.Header{Name: filepath.Base(file), Mode: int64(info.Mode().Perm()), Size: info.Size(), ModTime: time.Unix(0, 0)})
	if err != nil {
		return err
	}
	_, err = io.Copy(archive, f)
	return err
}

// Import adds the release of an archive that Export wrote, or finds that the host has it: added is false then. The archive
// contains a program that hosted control planes run: it has to come from a source that is trusted.
func (s Store) Import(r io.Reader) (_ Release, added bool, err error) {
	compressed, err := gzip.NewReader(r)
	if err != nil {
		return Release{}, false, damaged(err)
	}
	archive := tar.NewReader(compressed)
	if err := expect(archive, manifestFile); err != nil {
		return Release{}, false, err
	}
	m, err := parseManifest(archive)
	if err != nil {
		return Release{}, false, damaged(err)
	}
	if err := s.problem(m); err != nil {
		return Release{}, false, err
	}
	if _, err := s.Check(m.Kubernetes); err != nil {
		return Release{}, false, err
	}
	unlock, err := s.lock()
	if err != nil {
		return Release{}, false, err
	}
	defer unlock()
	if have, err := s.read(m.Kubernetes); err == nil {
		return released(have), false, nil
	}
	m.Added = s.Now().UTC()
	if err := s.unpack(archive, m); err != nil {
		return Release{}, false, s.diskFull(err)
	}
	return released(m), true, nil
}

// unpack reads the program and publishes the release.
func (s Store) unpack(archive *tar.Reader, m Manifest) error {
	if err := expect(archive, programFile); err != nil {
		return err
	}
	d, err := s.newDraft()
	if err != nil {
		return err
	}
	defer d.remove()
	sum, size, err := d.write(io.LimitReader(archive, m.Size+1))
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) {
		return damaged(err)
	}
	if err != nil {
		return err
	}
	if sum != m.Program || size != m.Size {
		return damaged(errors.New("the checksum of the program differs from that in the manifest"))
	}
	return d.publish(m)
}

// expect reads up to the next entry, which must be a file of the name.
func expect(archive *tar.Reader, name string) error {
	h, err := archive.Next()
	if err != nil {
		return damaged(err)
	}
	if h.Name != name || h.Typeflag != tar.TypeReg {
		return damaged(fmt.Errorf("it has %q where %s is expected", h.Name, name))
	}
	return nil
}

func damaged(err error) error {
	return fault.New(fault.Invalid, ReasonBroken, "this is not a whole archive of `slipway versions export` (%v); export or copy it again", err).From(err)
}

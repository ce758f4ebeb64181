package versions

import (
	"archive/tar"
	"compress/flate"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Export writes an added release as an archive for Import: a gzip-compressed tar file with the manifest and the
// program, in this order. `slipway versions export` calls it. Repeated exports of a release are identical.
func (s Store) Export(v string, w io.Writer) error {
	if v == s.Included {
		return fault.New(fault.Invalid, reasonVersion, "Kubernetes %s is included in this build of slipway: copy the program slipway itself", v)
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

// maxProgram limits the size of a release's program in bytes, to several times the usual size. The size in the archive
// cannot serve as the limit, because it could fill the disk.
const maxProgram = 1 << 30

// Import adds the release of an archive written by Export, possibly on another host and by another build of Slipway;
// `slipway versions import` calls it. If the host already has it, added is false. The archive contains a program that
// hosted control planes run, so it must come from a trusted source or have the given SHA-256 checksum, in hexadecimal.
// If the checksum is empty, it is not verified.
func (s Store) Import(r io.Reader, checksum string) (_ Release, added bool, err error) {
	whole := &checksumReader{r: r, sum: sha256.New()}
	compressed, err := gzip.NewReader(whole)
	if err != nil {
		return Release{}, false, damagedFault(err)
	}
	archive := tar.NewReader(compressed)
	if _, err := nextFile(archive, manifestFile); err != nil {
		return Release{}, false, err
	}
	m, err := parseManifest(archive)
	if err != nil {
		return Release{}, false, damagedFault(err)
	}
	if err := s.checkRunnable(m); err != nil {
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
		return releaseOf(have), false, nil
	}
	m.Added = s.Now().UTC()
	if err := s.unpack(archive, m, func() error { return whole.verify(checksum) }); err != nil {
		return Release{}, false, s.diskFull(err)
	}
	return releaseOf(m), true, nil
}

// checksumReader is a reader that computes the checksum of its input.
type checksumReader struct {
	r   io.Reader
	sum hash.Hash
}

func (s *checksumReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.sum.Write(p[:n])
	return n, err
}

// verify reads the rest of the input after the program, and compares the checksum.
func (s *checksumReader) verify(checksum string) error {
	const most = 1 << 20
	if checksum == "" {
		return nil
	}
	if _, err := io.Copy(io.Discard, io.LimitReader(s, most)); err != nil {
		return damagedFault(err)
	}
	if got := hex.EncodeToString(s.sum.Sum(nil)); !strings.EqualFold(got, checksum) {
		return fault.New(fault.Invalid, reasonBroken, "the archive has the SHA-256 checksum %s, and not %s: nothing was added; fetch the archive again, or check the source of the checksum", got, checksum)
	}
	return nil
}

// unpack reads the program, verifies the archive and publishes the release.
func (s Store) unpack(archive *tar.Reader, m manifest, verify func() error) error {
	size, err := nextFile(archive, programFile)
	if err != nil {
		return err
	}
	if m.Size <= 0 || m.Size > maxProgram || size != m.Size {
		return damagedFault(fmt.Errorf("its program has %d bytes and its manifest names %d, of at most %d", size, m.Size, maxProgram))
	}
	d, err := s.newDraft()
	if err != nil {
		return err
	}
	defer d.remove()
	sum, written, err := d.write(io.LimitReader(archive, m.Size+1))
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, gzip.ErrHeader) || errors.As(err, new(flate.CorruptInputError)) {
		return damagedFault(err)
	}
	if err != nil {
		return err
	}
	if sum != m.Program || written != m.Size {
		return damagedFault(errors.New("the checksum of the program differs from that in the manifest"))
	}
	if err := verify(); err != nil {
		return err
	}
	return d.publish(m)
}

// nextFile advances to the next entry, which must be a file with the given name, and returns its size.
func nextFile(archive *tar.Reader, name string) (int64, error) {
	h, err := archive.Next()
	if err != nil {
		return 0, damagedFault(err)
	}
	if h.Name != name || h.Typeflag != tar.TypeReg {
		return 0, damagedFault(fmt.Errorf("it has %q where %s is expected", h.Name, name))
	}
	return h.Size, nil
}

func damagedFault(err error) error {
	return fault.New(fault.Invalid, reasonBroken, "this is not a complete archive of `slipway versions export` (%v); export or copy it again", err).From(err)
}

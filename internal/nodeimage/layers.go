package nodeimage

import (
	"archive/tar"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"sort"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// entry is a file or link of a layer: exactly one of data, file and link is set. A build creates them from compiled
// programs and the files of images/node.
type entry struct {
	name string
	mode int64
	data []byte
	// file is the path of the file on this machine to copy.
	file string
	// link is the target of a symbolic link.
	link string
}

// writeLayer writes a layer of an image as a tar archive. It also writes the parent directories of the entries. The
// archive depends only on the entries: they are sorted, owned by root and without timestamps, so that the same sources
// result in the same image.
func writeLayer(w io.Writer, entries []entry) error {
	sort.Slice(entries, func(i, j int) bool { return entries[i].name < entries[j].name })
	out := tar.NewWriter(w)
	made := map[string]bool{".": true}
	for _, e := range entries {
		if err := writeFolders(out, path.Dir(e.name), made); err != nil {
			return err
		}
		if err := writeEntry(out, e); err != nil {
			return fmt.Errorf("writing %s: %w", e.name, err)
		}
	}
	return out.Close()
}

func writeFolders(out *tar.Writer, dir string, made map[string]bool) error {
	if made[dir] {
		return nil
	}
	if err := writeFolders(out, path.Dir(dir), made); err != nil {
		return err
	}
	made[dir] = true
	return out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: time.Unix(0, 0)})
}

func writeEntry(out *tar.Writer, e entry) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(e.data)), ModTime: time.Unix(0, 0)}
	if e.link != "" {
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, e.link, 0o777
		return out.WriteHeader(h)
	}
	if e.file == "" {
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		_, err := out.Write(e.data)
		return err
	}
	f, err := os.Open(e.file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h.Size = info.Size()
	if err := out.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(out, f)
	return err
}

// programEntry is an executable copied from this machine.
func programEntry(name, file string) entry { return entry{name: name, mode: 0o755, file: file} }

// treeEntries returns the files below dir of an embedded tree. Files that begin with "#!" are executable. A build adds
// the folder images/node/rootfs with it.
func treeEntries(tree fs.FS, dir string) ([]entry, error) {
	var out []entry
	err := fs.WalkDir(tree, dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree, name)
		mode := int64(0o644)
		if strings.HasPrefix(string(data), "#!") {
			mode = 0o755
		}
		out = append(out, entry{name: strings.TrimPrefix(name, dir+"/"), mode: mode, data: data})
		return err
	})
	return out, err
}

// linkEntries parses lines of path and target. The text is images/node/links.txt.
func linkEntries(text string) ([]entry, error) {
	var out []entry
	for _, line := range contentLines(text) {
		f := strings.Fields(line)
		if len(f) != 2 {
			return nil, fmt.Errorf("reading links: %q is not a path and a target", line)
		}
		out = append(out, entry{name: f[0], link: f[1]})
	}
	return out, nil
}

// tarFile returns one file of a tar archive. A build extracts BusyBox from a userland with it.
func tarFile(archive, name string) ([]byte, error) {
	f, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for in := tar.NewReader(f); ; {
		h, err := in.Next()
		if err != nil {
			return nil, fmt.Errorf("looking for %s in %s: %w", name, archive, err)
		}
		if path.Clean(h.Name) == name && h.Typeflag == tar.TypeReg {
			return io.ReadAll(in)
		}
	}
}

// layer is an uncompressed tar archive on disk as a layer of an image. Compression would only cost time, because
// nothing is sent over a network.
type layer struct {
	file string
	hash v1.Hash
	size int64
}

func newLayer(file string) (layer, error) {
	f, err := os.Open(file)
	if err != nil {
		return layer{}, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return layer{file: file, hash: v1.Hash{Algorithm: "sha256", Hex: fmt.Sprintf("%x", h.Sum(nil))}, size: n}, err
}

// Digest implements v1.Layer.
func (l layer) Digest() (v1.Hash, error) { return l.hash, nil }

// DiffID implements v1.Layer.
func (l layer) DiffID() (v1.Hash, error) { return l.hash, nil }

// Compressed implements v1.Layer.
func (l layer) Compressed() (io.ReadCloser, error) { return os.Open(l.file) }

// Uncompressed implements v1.Layer.
func (l layer) Uncompressed() (io.ReadCloser, error) { return os.Open(l.file) }

// Size implements v1.Layer.
func (l layer) Size() (int64, error) { return l.size, nil }

// MediaType implements v1.Layer.
func (l layer) MediaType() (types.MediaType, error) { return types.DockerUncompressedLayer, nil }

package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"time"
)

// program is the built slipway binary of a release. Its methods write it in the formats in which [Write] publishes it:
// archive, Debian package, image and bill of materials. The same program, version and time must result in the same
// bytes.
type program struct {
	// Version of the release, for example v0.1.0.
	Version string
	// Time is the modification time of all written files, the time of the commit.
	Time time.Time
	// Licence is the text of the licence.
	Licence []byte
	binary  []byte
	build   *buildinfo.BuildInfo
}

// readArtifact reads the program from a binary, which must be built by Go. [Write] calls it once.
func readArtifact(binary, version string, when time.Time, licence []byte) (program, error) {
	data, err := os.ReadFile(binary)
	if err != nil {
		return program{}, fmt.Errorf("reading the program: %w", err)
	}
	build, err := buildinfo.Read(bytes.NewReader(data))
	if err != nil {
		return program{}, fmt.Errorf("reading the build information of %s: %w", binary, err)
	}
	return program{Version: version, Time: when.UTC().Truncate(time.Second), Licence: licence, binary: data, build: build}, nil
}

// setting returns a build setting, such as GOARCH.
func (p program) setting(key string) string {
	for _, s := range p.build.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// Platform returns the operating system and the architecture, such as "linux" and "amd64".
func (p program) Platform() (system, architecture string) {
	return p.setting("GOOS"), p.setting("GOARCH")
}

// file is a file in an archive, a Debian package or an image.
type file struct {
	name string
	mode int64
	data []byte
}

// Archive writes a gzipped tar file with the program and its licence. [Write] calls it; users download the file and
// unpack it.
func (p program) Archive(w io.Writer) error {
	return p.pack(w, []file{{"slipway", 0o755, p.binary}, {"LICENSE", 0o644, p.Licence}})
}

// pack writes files and their parent directories, owned by root and with the time of the release.
func (p program) pack(w io.Writer, files []file) error {
	zipped := gzip.NewWriter(w)
	if err := p.tar(zipped, files); err != nil {
		return err
	}
	return zipped.Close()
}

func (p program) tar(w io.Writer, files []file) error {
	archive := tar.NewWriter(w)
	var made []string
	for _, f := range files {
		for _, dir := range parents(f.name) {
			if slices.Contains(made, dir) {
				continue
			}
			made = append(made, dir)
			header := &tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: p.Time, Format: tar.FormatGNU}
			if err := archive.WriteHeader(header); err != nil {
				return fmt.Errorf("writing folder %s: %w", dir, err)
			}
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: p.Time, Format: tar.FormatGNU}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("writing %s: %w", f.name, err)
		}
		if _, err := archive.Write(f.data); err != nil {
			return fmt.Errorf("writing %s: %w", f.name, err)
		}
	}
	return archive.Close()
}

// parents returns the parent directories of a file, the topmost first.
func parents(name string) []string {
	var out []string
	for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
		out = append([]string{dir}, out...)
	}
	return out
}

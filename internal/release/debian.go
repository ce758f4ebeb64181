package release

import (
	"bytes"
	"crypto/md5" //nolint:gosec // what dpkg verifies files with
	"fmt"
	"io"
	"strings"

	"github.com/blakesmith/ar"
)

// Debian writes the program as a Debian package, which [Write] adds to a release. The format is dpkg's; the order of
// the members in the archive must not change.
func (p program) Debian(w io.Writer) error {
	files := []file{
		{"usr/bin/slipway", 0o755, p.binary},
		{"usr/share/doc/slipway/copyright", 0o644, p.Licence},
	}
	var data, control bytes.Buffer
	if err := p.pack(&data, files); err != nil {
		return err
	}
	if err := p.pack(&control, []file{{"control", 0o644, p.control(files)}, {"md5sums", 0o644, sums(files)}}); err != nil {
		return err
	}
	archive := ar.NewWriter(w)
	if err := archive.WriteGlobalHeader(); err != nil {
		return fmt.Errorf("writing a Debian package: %w", err)
	}
	for _, member := range []file{{name: "debian-binary", data: []byte("2.0\n")}, {name: "control.tar.gz", data: control.Bytes()}, {name: "data.tar.gz", data: data.Bytes()}} {
		if err := archive.WriteHeader(&ar.Header{Name: member.name, ModTime: p.Time, Mode: 0o100644, Size: int64(len(member.data))}); err != nil {
			return fmt.Errorf("writing %s of a Debian package: %w", member.name, err)
		}
		if _, err := archive.Write(member.data); err != nil {
			return fmt.Errorf("writing %s of a Debian package: %w", member.name, err)
		}
	}
	return nil
}

// control returns the control file. A tilde marks a pre-release, which Debian sorts before the release.
func (p program) control(files []file) []byte {
	_, architecture := p.Platform()
	size := 0
	for _, f := range files {
		size += (len(f.data) + 1023) / 1024
	}
	fields := []string{
		"Package: slipway",
		"Version: " + strings.Replace(strings.TrimPrefix(p.Version, "v"), "-", "~", 1),
		"Architecture: " + architecture,
		"Maintainer: The Slipway authors <slipway@slipway.dev>",
		fmt.Sprintf("Installed-Size: %d", size),
		"Suggests: docker.io",
		"Section: admin",
		"Priority: optional",
		"Homepage: https://slipway.dev",
		"Description: Kubernetes clusters from one binary, with the Cluster API",
		" Slipway creates, upgrades and repairs Kubernetes clusters: an implementation of",
		" Cluster API with a management cluster of its own.",
	}
	return []byte(strings.Join(fields, "\n") + "\n")
}

// sums returns the file md5sums, by which dpkg verifies installed files.
func sums(files []file) []byte {
	var out bytes.Buffer
	for _, f := range files {
		fmt.Fprintf(&out, "%x  %s\n", md5.Sum(f.data), f.name) //nolint:gosec // as above
	}
	return out.Bytes()
}

package release_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/blakesmith/ar"
	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/slipwayhq/slipway/internal/release"
)

var when = time.Date(2026, 11, 24, 5, 0, 0, 0, time.UTC)

// artifactProgram is this test, as a program of a version.
func artifactProgram(t *testing.T, version string) (release.Program, []byte) {
	t.Helper()
	file, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := release.ReadArtifact(file, version, when, []byte("a licence\n"))
	if err != nil {
		t.Fatal(err)
	}
	return p, data
}

func write(t *testing.T, f func(io.Writer) error) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := f(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// listing is what is in a gzipped tar file: "mode owner name", and the content of each file.
func listing(t *testing.T, data []byte) ([]string, map[string][]byte) {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return entries(t, unzipped)
}

func entries(t *testing.T, r io.Reader) ([]string, map[string][]byte) {
	t.Helper()
	var out []string
	contents := map[string][]byte{}
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return out, contents
		}
		if err != nil {
			t.Fatal(err)
		}
		if contents[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(when) || header.Uid != 0 || header.Gid != 0 {
			t.Errorf("%s is of %v and %d:%d", header.Name, header.ModTime, header.Uid, header.Gid)
		}
		out = append(out, header.FileInfo().Mode().String()+" "+header.Name)
	}
}

func TestArchive(t *testing.T) {
	p, binary := artifactProgram(t, "v0.1.0")
	names, contents := listing(t, write(t, p.Archive))
	if diff := cmp.Diff([]string{"-rwxr-xr-x slipway", "-rw-r--r-- LICENSE"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !bytes.Equal(contents["slipway"], binary) {
		t.Error("the program in the archive is another one")
	}
}

func TestDebianPackage(t *testing.T) {
	for version, want := range map[string]string{"v0.1.0": "0.1.0", "v1.2.3-rc.1": "1.2.3~rc.1"} {
		p, binary := artifactProgram(t, version)
		archive := ar.NewReader(bytes.NewReader(write(t, p.Debian)))
		members := map[string][]byte{}
		var order []string
		for {
			header, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if members[header.Name], err = io.ReadAll(archive); err != nil {
				t.Fatal(err)
			}
			order = append(order, header.Name)
		}
		if diff := cmp.Diff([]string{"debian-binary", "control.tar.gz", "data.tar.gz"}, order); diff != "" || string(members["debian-binary"]) != "2.0\n" {
			t.Errorf("members (-want +got):\n%s", diff)
		}
		names, contents := listing(t, members["data.tar.gz"])
		if diff := cmp.Diff([]string{
			"drwxr-xr-x usr/", "drwxr-xr-x usr/bin/", "-rwxr-xr-x usr/bin/slipway",
			"drwxr-xr-x usr/share/", "drwxr-xr-x usr/share/doc/", "drwxr-xr-x usr/share/doc/slipway/", "-rw-r--r-- usr/share/doc/slipway/copyright",
		}, names); diff != "" || !bytes.Equal(contents["usr/bin/slipway"], binary) {
			t.Errorf("files (-want +got):\n%s", diff)
		}
		_, control := listing(t, members["control.tar.gz"])
		if got := string(control["control"]); !strings.Contains(got, "\nVersion: "+want+"\n") || !strings.HasPrefix(got, "Package: slipway\n") {
			t.Errorf("control of %s:\n%s", version, got)
		}
		if got := string(control["md5sums"]); strings.Count(got, "\n") != 2 || !strings.Contains(got, "  usr/bin/slipway\n") {
			t.Errorf("md5sums: %s", got)
		}
	}
}

// The bill names the modules that are linked into a program, those alone, and the compiler.
func TestMaterials(t *testing.T) {
	file := filepath.Join(t.TempDir(), "generate") // a program with one module; a test has no list of its modules
	if out, err := exec.Command("go", "build", "-pgo=off", "-o", file, "../../hack/crds").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p, err := release.ReadArtifact(file, "v0.1.0", when, nil)
	if err != nil {
		t.Fatal(err)
	}
	bom := &cdx.BOM{}
	if err := cdx.NewBOMDecoder(bytes.NewReader(write(t, p.Materials)), cdx.BOMFileFormatJSON).Decode(bom); err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, c := range *bom.Components {
		found = append(found, c.PackageURL[:strings.IndexByte(c.PackageURL, '@')])
	}
	want := []string{"pkg:golang/std", "pkg:golang/go.yaml.in/yaml/v2", "pkg:golang/sigs.k8s.io/yaml"}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("modules (-want +got):\n%s", diff)
	}
	if got := bom.Metadata; got.Component.Version != "v0.1.0" || got.Timestamp != "2026-11-24T05:00:00Z" {
		t.Errorf("metadata: %+v", got)
	}
}

func TestImage(t *testing.T) {
	p, binary := artifactProgram(t, "v0.1.0")
	dir := filepath.Join(t.TempDir(), "image")
	if err := p.Image(dir, "example.org/manager:v0.1.0"); err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"org.opencontainers.image.ref.name": "v0.1.0", "io.containerd.image.name": "example.org/manager:v0.1.0"}
	if diff := cmp.Diff(want, manifest.Manifests[0].Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(image); err != nil {
		t.Error(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	system, architecture := p.Platform()
	if config.OS != system || config.Architecture != architecture || config.Config.User != "65532:65532" || !config.Created.Equal(when) {
		t.Errorf("config: %+v", config)
	}
	if diff := cmp.Diff([]string{"/slipway"}, config.Config.Entrypoint); diff != "" {
		t.Error(diff)
	}
	inside(t, image, binary)
}

func inside(t *testing.T, image v1.Image, binary []byte) {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	names, contents := entries(t, content)
	if diff := cmp.Diff([]string{"-rwxr-xr-x slipway", "drwxr-xr-x etc/", "-rw-r--r-- etc/passwd"}, names); diff != "" || !bytes.Equal(contents["slipway"], binary) {
		t.Errorf("files of the image (-want +got):\n%s", diff)
	}
}

func TestWhatIsNoProgram(t *testing.T) {
	if _, err := release.ReadArtifact("artifact_test.go", "v0.1.0", when, nil); err == nil || !strings.Contains(err.Error(), "artifact_test.go") {
		t.Errorf("got %v", err)
	}
}

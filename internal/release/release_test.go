package release_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/clusterctl/lint"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/release"
)

// program builds a small one: what a release does with it does not depend on which it is.
func program(t *testing.T) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "program")
	if text, err := exec.Command("go", "build", "-pgo=off", "-o", out, "../../hack/crds").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}

func config(dir, binary string) release.Config {
	return release.Config{
		Dir: dir, Version: "v0.3.1", Image: "example.org/team/manager", Binary: binary, Sources: os.DirFS("../.."),
		Time: time.Date(2026, 11, 24, 5, 0, 0, 0, time.UTC),
	}
}

// files are the sums of all files below a folder.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		out[name] = fmt.Sprintf("%x", sha256.Sum256(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// CC2-01, CC2-02, CC2-05, CC2-07: where which file is.
func TestWrite(t *testing.T) {
	binary := program(t)
	first, second := t.TempDir(), t.TempDir()
	if err := release.Write(t.Context(), config(first, binary)); err != nil {
		t.Fatal(err)
	}
	got := files(t, first)
	var names []string
	for name := range got {
		if !strings.HasPrefix(name, "slipway/v0.3.1/image/blobs/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	want := []string{
		"bootstrap-kubeadm/v0.3.1/bootstrap-components.yaml", "bootstrap-kubeadm/v0.3.1/metadata.yaml",
		"cluster-api/v0.3.1/core-components.yaml", "cluster-api/v0.3.1/metadata.yaml", "cluster-api/v0.3.1/runtime-sdk-openapi.yaml",
		"control-plane-hosted/v0.3.1/control-plane-components.yaml", "control-plane-hosted/v0.3.1/metadata.yaml",
		"control-plane-kubeadm/v0.3.1/control-plane-components.yaml", "control-plane-kubeadm/v0.3.1/metadata.yaml",
		"infrastructure-local/v0.3.1/cluster-template-class.yaml", "infrastructure-local/v0.3.1/cluster-template-kubeadm.yaml",
		"infrastructure-local/v0.3.1/cluster-template-pool.yaml",
		"infrastructure-local/v0.3.1/cluster-template-simulated.yaml", "infrastructure-local/v0.3.1/cluster-template.yaml",
		"infrastructure-local/v0.3.1/clusterclass-kubeadm.yaml",
		"infrastructure-local/v0.3.1/clusterclass-local.yaml", "infrastructure-local/v0.3.1/clusterclass-simulated.yaml",
		"infrastructure-local/v0.3.1/infrastructure-components.yaml", "infrastructure-local/v0.3.1/metadata.yaml",
		"infrastructure-ssh/v0.3.1/cluster-template-kubeadm.yaml", "infrastructure-ssh/v0.3.1/cluster-template.yaml",
		"infrastructure-ssh/v0.3.1/clusterclass-ssh-kubeadm.yaml", "infrastructure-ssh/v0.3.1/clusterclass-ssh.yaml",
		"infrastructure-ssh/v0.3.1/infrastructure-components.yaml", "infrastructure-ssh/v0.3.1/metadata.yaml",
		"slipway/v0.3.1/SHA256SUMS", "slipway/v0.3.1/image/index.json", "slipway/v0.3.1/image/oci-layout", "slipway/v0.3.1/manager.yaml",
		"slipway/v0.3.1/slipway_0.3.1_" + runtime.GOARCH + ".deb", "slipway/v0.3.1/slipway_0.3.1_linux_" + runtime.GOARCH + ".cdx.json",
		"slipway/v0.3.1/slipway_0.3.1_linux_" + runtime.GOARCH + ".tar.gz",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	sums, err := os.ReadFile(filepath.Join(first, "slipway/v0.3.1/SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(sums, []byte("\n")); n != len(got)-1 {
		t.Errorf("%d checksums of %d files", n, len(got)-1)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(sums)), "\n") {
		if sum, name, _ := strings.Cut(line, "  "); got[name] != sum {
			t.Errorf("checksum of %s is %s, want %s", name, sum, got[name])
		}
	}
	if err := release.Write(t.Context(), config(second, binary)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, files(t, second)); diff != "" {
		t.Errorf("a second release of the same differs (-first +second):\n%s", diff)
	}
	if err := release.Write(t.Context(), config(first, binary)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, files(t, first)); diff != "" {
		t.Errorf("written again into the same folder, it differs (-first +second):\n%s", diff)
	}
}

// Our own release keeps every rule of the contract, advice included.
func TestReleaseIsLinted(t *testing.T) {
	dir := t.TempDir()
	if err := release.Write(t.Context(), config(dir, program(t))); err != nil {
		t.Fatal(err)
	}
	releases, findings, err := lint.Dir(dir)
	if err != nil || releases != len(release.Providers()) {
		t.Fatalf("%d releases of %d providers: %v", releases, len(release.Providers()), err)
	}
	for _, f := range findings {
		t.Errorf("%s %s %s: %s (%s)", f.Release, f.File, f.Object, f.Message, f.Rule)
	}
}

// CC2-06: a series for each minor version so far.
func TestMetadata(t *testing.T) {
	dir := t.TempDir()
	if err := release.Write(t.Context(), config(dir, program(t))); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "infrastructure-local/v0.3.1/metadata.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := "apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries:\n"
	for minor := range 4 {
		want += fmt.Sprintf("- major: 0\n  minor: %d\n  contract: v1beta2\n", minor)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestVersionsThatCannotBeReleased(t *testing.T) {
	for _, version := range []string{"", "0.1.0", "v1", "v1.2", "v01.2.3", "v1.2.3/..", "fa1d2e4-dirty"} {
		c := config(t.TempDir(), "none")
		c.Version = version
		if f := fault.As(release.Write(t.Context(), c)); f == nil || f.Reason != "InvalidVersion" {
			t.Errorf("%q: %v", version, f)
		}
		if left, err := os.ReadDir(c.Dir); err != nil || len(left) > 0 {
			t.Errorf("%q left %v %v", version, left, err)
		}
	}
	c := config(t.TempDir(), "none")
	if err := release.Write(t.Context(), c); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a program: %v", err)
	}
}

package container

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/providers/local/backend"
)

// The tests in this file use the Docker Engine of this host. Everything they make belongs to an instance of its own,
// which is removed at the end.

const patience = time.Minute

func imageName(e *Engine) string { return "slipway-test-node:" + e.instance }

// testImage makes a small image out of this host's shell and tools, and returns its name. Nothing is pulled.
func testImage(t *testing.T, e *Engine) string {
	t.Helper()
	name := imageName(e)
	files := map[string]string{"/bin/sh": "/bin/dash"}
	for _, tool := range []string{"base64", "cat", "chmod", "chown", "mkdir", "mv", "rm", "tail", "sleep", "timeout"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		files["/bin/"+tool] = path
	}
	libraries := regexp.MustCompile(`(/\S+) \(0x`)
	for _, binary := range []string{"/bin/dash", files["/bin/cat"], files["/bin/mv"], files["/bin/mkdir"], files["/bin/base64"]} {
		out, err := exec.Command("ldd", binary).Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range libraries.FindAllStringSubmatch(string(out), -1) {
			files[m[1]] = m[1]
		}
	}
	var image bytes.Buffer
	w := tar.NewWriter(&image)
	for target, source := range files {
		content, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.WriteHeader(&tar.Header{Name: strings.TrimPrefix(target, "/"), Mode: 0o755, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := e.api.ImageImport(t.Context(), client.ImageImportSource{Source: &image, SourceName: "-"}, name, client.ImageImportOptions{
		Changes: []string{`CMD ["/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done"]`, "LABEL " + backend.LabelVersion + "=v1.36.3"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Fatal(err)
	}
	return name
}

// engine returns the host's engine with an instance that is removed when the test ends.
func engine(t *testing.T) *Engine {
	t.Helper()
	instance := fmt.Sprintf("slipway-test-%d-%s", os.Getpid(), strings.ToLower(strings.TrimPrefix(t.Name(), "Test")))
	e, err := New(Config{Instance: instance})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Ping(t.Context()); err != nil {
		t.Fatalf("these tests need Docker (make test sets it up): %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := RemoveInstance(ctx, instance); err != nil {
			t.Error(err)
		}
		_, _ = e.api.ImageRemove(ctx, imageName(e), client.ImageRemoveOptions{Force: true}) // not every test makes it
		e.Close()
	})
	return e
}

func owner(name string) backend.Owner {
	return backend.Owner{Cluster: "c", Object: types.NamespacedName{Namespace: "slipway-test", Name: name}, UID: "u-1"}
}

func (e *Engine) testNetwork(t *testing.T) backend.Network {
	t.Helper()
	o := owner("c")
	n, err := e.EnsureNetwork(t.Context(), backend.NetworkSpec{Owner: o, Name: backend.NetworkName(e.instance, o.Object)})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (e *Engine) testMachine(t *testing.T, name string) backend.MachineSpec {
	t.Helper()
	o := owner(name)
	spec := backend.MachineSpec{Owner: o, Name: backend.MachineName(e.instance, o.Object), Hostname: backend.Hostname(name),
		Network: e.testNetwork(t).Name, Image: testImage(t, e)}
	if _, err := e.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

// eventually asks again until the answer is yes.
func eventually(t *testing.T, what string, yes func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !yes() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s", what, patience)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

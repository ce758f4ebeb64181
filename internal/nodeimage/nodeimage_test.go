package nodeimage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/image"
	"github.com/moby/moby/client"

	"github.com/slipwayhq/slipway/internal/fault"
)

// engine is a Docker engine that records what it is asked; the calls it does not answer end the test.
type engine struct {
	Docker
	images  []image.Summary
	log     []string
	fail    string
	status  int64
	filters client.Filters
}

var errEngine = errors.New("engine trouble")

func (e *engine) call(name string) error {
	e.log = append(e.log, name)
	if name == e.fail {
		return errEngine
	}
	return nil
}

func (e *engine) ImageList(_ context.Context, o client.ImageListOptions) (client.ImageListResult, error) {
	e.filters = o.Filters
	return client.ImageListResult{Items: e.images}, e.call("list")
}

func (e *engine) ContainerCreate(context.Context, client.ContainerCreateOptions) (client.ContainerCreateResult, error) {
	return client.ContainerCreateResult{ID: "c1"}, e.call("create")
}

func (e *engine) CopyToContainer(_ context.Context, _ string, o client.CopyToContainerOptions) (client.CopyToContainerResult, error) {
	if _, err := io.Copy(io.Discard, o.Content); err != nil {
		return client.CopyToContainerResult{}, err
	}
	return client.CopyToContainerResult{}, e.call("copy")
}

func (e *engine) ContainerStart(context.Context, string, client.ContainerStartOptions) (client.ContainerStartResult, error) {
	return client.ContainerStartResult{}, e.call("start")
}

func (e *engine) ContainerWait(context.Context, string, client.ContainerWaitOptions) client.ContainerWaitResult {
	result, errs := make(chan container.WaitResponse, 1), make(chan error, 1)
	if err := e.call("wait"); err != nil {
		errs <- err
	} else {
		result <- container.WaitResponse{StatusCode: e.status}
	}
	return client.ContainerWaitResult{Result: result, Error: errs}
}

func (e *engine) ContainerLogs(context.Context, string, client.ContainerLogsOptions) (client.ContainerLogsResult, error) {
	const text = "containerd does not start\n"
	frame := string([]byte{1, 0, 0, 0, 0, 0, 0, byte(len(text))}) + text
	return io.NopCloser(strings.NewReader(frame)), e.call("logs")
}

func (e *engine) ContainerCommit(_ context.Context, _ string, o client.ContainerCommitOptions) (client.ContainerCommitResult, error) {
	return client.ContainerCommitResult{}, e.call("commit " + o.Reference)
}

func (e *engine) ContainerRemove(_ context.Context, id string, o client.ContainerRemoveOptions) (client.ContainerRemoveResult, error) {
	return client.ContainerRemoveResult{}, e.call(fmt.Sprintf("remove %s %v %v", id, o.Force, o.RemoveVolumes))
}

// Whatever fails while images are preloaded, the container and its volume do not stay.
func TestPreloading(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "images.tar")
	if err := os.WriteFile(archive, []byte("images"), 0o600); err != nil {
		t.Fatal(err)
	}
	const removed = "remove c1 true true"
	for name, c := range map[string]struct {
		fail   string
		status int64
		want   []string
		says   string
	}{
		"works":           {want: []string{"create", "copy", "start", "wait", "commit r:1", removed}},
		"create fails":    {fail: "create", want: []string{"create"}, says: "creating the preloading container"},
		"copy fails":      {fail: "copy", want: []string{"create", "copy", removed}, says: "copying container images"},
		"start fails":     {fail: "start", want: []string{"create", "copy", "start", removed}, says: "starting the preloading container"},
		"wait fails":      {fail: "wait", want: []string{"create", "copy", "start", "wait", removed}, says: "waiting for the preloading container"},
		"commit fails":    {fail: "commit r:1", want: []string{"create", "copy", "start", "wait", "commit r:1", removed}, says: errEngine.Error()},
		"script fails":    {status: 1, want: []string{"create", "copy", "start", "wait", "logs", removed}, says: "containerd does not start"},
		"and has no logs": {status: 1, fail: "logs", want: []string{"create", "copy", "start", "wait", "logs", removed}, says: errEngine.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			e := &engine{fail: c.fail, status: c.status}
			err := preloading{docker: e, base: "b:1", archive: archive}.commit(t.Context(), "r:1", nil)
			if diff := cmp.Diff(c.want, e.log); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got error %v, want one that says %q", err, c.says)
			}
		})
	}
}

func TestList(t *testing.T) {
	e := &engine{images: []image.Summary{
		{ID: "sha256:1", RepoTags: []string{workerRef("v1.9.0")}, Labels: map[string]string{labelVersion: "v1.9.0", labelRole: roleWorker}, Size: 7, Created: 60},
		{ID: "sha256:2", RepoTags: []string{controlPlaneRef("v1.36.3"), "mine:latest"}, Labels: map[string]string{labelVersion: "v1.36.3", labelRole: roleControlPlane}},
		{ID: "sha256:3", RepoTags: []string{workerRef("v1.36.3")}, Labels: map[string]string{labelVersion: "v1.36.3", labelRole: roleWorker}},
		{ID: "sha256:4", Labels: map[string]string{labelVersion: "v1.36.3"}},
	}}
	got, err := List(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	want := []Image{
		{Ref: "slipway.dev/node-control-plane:v1.36.3", ID: "sha256:2", KubernetesVersion: "v1.36.3", ControlPlane: true, Created: time.Unix(0, 0).UTC()},
		{Ref: "slipway.dev/node:v1.36.3", ID: "sha256:3", KubernetesVersion: "v1.36.3", Created: time.Unix(0, 0).UTC()},
		{Ref: "slipway.dev/node:v1.9.0", ID: "sha256:1", KubernetesVersion: "v1.9.0", Size: 7, Created: time.Unix(60, 0).UTC()},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("newest version first, only what has a name (-want +got):\n%s", diff)
	}
	if !e.filters["label"][labelVersion] {
		t.Errorf("asked for %v: all images of the machine would be listed", e.filters)
	}
	if _, err := List(t.Context(), &engine{fail: "list"}); !errors.Is(err, errEngine) {
		t.Errorf("the engine's error is lost: %v", err)
	}
}

func TestListUnreachable(t *testing.T) {
	docker, err := client.New(client.WithHost("unix://" + filepath.Join(t.TempDir(), "none.sock")))
	if err != nil {
		t.Fatal(err)
	}
	defer docker.Close()
	_, err = List(t.Context(), docker)
	var f *fault.Fault
	if !errors.As(err, &f) || f.Kind != fault.Unreachable || !strings.Contains(f.Message, "docker info") {
		t.Errorf("got %v, want a fault of kind Unreachable that says what to do", err)
	}
}

func TestComplete(t *testing.T) {
	o, err := Options{Docker: &engine{}}.complete()
	if err != nil {
		t.Fatal(err)
	}
	if o.KubernetesVersion != DefaultVersion || o.ref() != "slipway.dev/node:"+DefaultVersion || filepath.Base(o.CacheDir) != "nodeimage" {
		t.Errorf("defaults: %+v", o)
	}
	if o.ControlPlane = true; o.ref() != "slipway.dev/node-control-plane:"+DefaultVersion || o.role() != roleControlPlane {
		t.Errorf("control plane: %s, %s", o.ref(), o.role())
	}
	for _, version := range []string{"1.36.3", "v2.0.0", "latest", "v1.36", "v1.36.3; rm"} {
		_, err := Options{Docker: &engine{}, KubernetesVersion: version}.complete()
		var f *fault.Fault
		if !errors.As(err, &f) || f.Kind != fault.Invalid {
			t.Errorf("version %q: got %v, want a fault of kind Invalid", version, err)
		}
	}
}

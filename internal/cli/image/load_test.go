package image

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/backend"
)

// none is a Docker without images.
type none struct{}

func (none) HasImage(context.Context, string) (bool, error) { return false, nil }

func (none) SaveImages(context.Context, []string) (io.ReadCloser, error) {
	return nil, errors.New("there are none")
}

// What is loaded into a workload cluster is kept for nodes that are created later, unless it is to be loaded once.
func TestKeep(t *testing.T) {
	demo := types.NamespacedName{Namespace: "ns", Name: "demo"}
	opened := 0
	s := source{name: "web:1", open: func(context.Context) (io.ReadCloser, error) {
		opened++
		return io.NopCloser(strings.NewReader("layers")), nil
	}}
	for name, c := range map[string]struct {
		flags loadFlags
		kept  int
	}{
		"a workload cluster":     {loadFlags{namespace: "ns", cluster: "demo"}, 1},
		"once":                   {loadFlags{namespace: "ns", cluster: "demo", once: true}, 0},
		"the management cluster": {loadFlags{namespace: "ns"}, 0},
	} {
		archives := backend.ImageArchives{Dir: t.TempDir()}
		copied, err := c.flags.storeCopy(t.Context(), archives, s)
		if err != nil {
			t.Fatal(err)
		}
		before := opened
		r, err := copied.open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil || string(text) != "layers" || c.kept == 1 && opened != before {
			t.Errorf("%s: nodes of now get %q, %v", name, text, err)
		}
		if files, err := archives.ForCluster(demo); err != nil || len(files) != c.kept {
			t.Errorf("%s: kept are %v, %v", name, files, err)
		}
		if err := copied.discard(); err != nil {
			t.Error(err)
		}
		if files, err := archives.ForCluster(demo); err != nil || len(files) != 0 {
			t.Errorf("%s: one that no node loads is kept: %v, %v", name, files, err)
		}
	}
}

// The folder of an OCI layout is read as an archive with all its files; another folder is refused with what it lacks.
func TestFolders(t *testing.T) {
	folder, empty := t.TempDir(), t.TempDir()
	want := map[string]string{"oci-layout": "{}", "index.json": "{\"manifests\":[]}", "blobs/sha256/a": "content"}
	for name, content := range want {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sources, err := sourcesOf(t.Context(), none{}, []string{folder})
	if err != nil || len(sources) != 1 {
		t.Fatal(sources, err)
	}
	reader, err := sources[0].open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	got := map[string]string{}
	for r := tar.NewReader(reader); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			content, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			got[header.Name] = string(content)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("files of the archive (-want +got):\n%s", d)
	}
	_, err = sourcesOf(t.Context(), none{}, []string{empty})
	if f := fault.As(err); f == nil || f.Kind != fault.Invalid || !strings.Contains(f.Error(), "nor the folder of an OCI layout") {
		t.Errorf("a folder without a layout: %v", err)
	}
}

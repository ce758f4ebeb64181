package snapshots

import (
	"context"
	"io"
	"strings"
	"time"
)

// namespaceStore is the store of one namespace in a separate folder, so that the size limit applies to each namespace.
// [StoreSettings.Open] returns it for destinations in a folder. Its methods convert names <namespace>/<cluster>/<file>
// to names relative to that folder.
type namespaceStore struct {
	Store
	namespace string
}

func (w namespaceStore) inner(name string) string {
	if name == w.namespace {
		return "."
	}
	return strings.TrimPrefix(name, w.namespace+"/")
}

func (w namespaceStore) Write(ctx context.Context, name string, r io.Reader, most int64) error {
	return w.Store.Write(ctx, w.inner(name), r, most)
}

func (w namespaceStore) Read(ctx context.Context, name string) (io.ReadCloser, error) {
	return w.Store.Read(ctx, w.inner(name))
}

func (w namespaceStore) List(ctx context.Context, folder string) ([]File, error) {
	files, err := w.Store.List(ctx, w.inner(folder))
	for i := range files {
		files[i].Name = w.namespace + "/" + files[i].Name
	}
	return files, err
}

func (w namespaceStore) Delete(ctx context.Context, name string) error {
	return w.Store.Delete(ctx, w.inner(name))
}

func (w namespaceStore) Tidy(ctx context.Context, folder string, before time.Time) error {
	return w.Store.Tidy(ctx, w.inner(folder), before)
}

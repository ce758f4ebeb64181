package container

import (
	"context"
	"io"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/slipwayhq/slipway/internal/local/backend"
)

// HasImage reports whether the engine has an image. `slipway create cluster`, `slipway image load` and the management
// node check it before they need the image.
func (e *Engine) HasImage(ctx context.Context, image string) (bool, error) {
	ctx, cancel := withCallTimeout(ctx)
	defer cancel()
	_, err := e.api.ImageInspect(ctx, image)
	if cerrdefs.IsNotFound(err) {
		return false, nil
	}
	return err == nil, e.fault("looking for image "+image, err)
}

// SaveImages returns images of the engine as an archive, for `slipway image load`.
func (e *Engine) SaveImages(ctx context.Context, images []string) (io.ReadCloser, error) {
	r, err := e.api.ImageSave(ctx, images)
	if err != nil {
		return nil, e.fault("reading images from Docker", err)
	}
	return r, nil
}

// LoadImages imports the images of an archive, in the format of `docker save` or an OCI layout in a tar file, into
// containerd of the machine. It returns containerd's output. `slipway image load` calls it for existing nodes, and
// package backend for new ones.
func (e *Engine) LoadImages(ctx context.Context, ref backend.Ref, archive io.Reader) (string, error) {
	c, err := e.running(ctx, ref)
	if err != nil {
		return "", err
	}
	return e.importImages(ctx, c, archive)
}

// Nodes returns the running machines of a Cluster. An empty name selects the machines that belong to no Cluster.
// `slipway image load` selects nodes with it.
func (e *Engine) Nodes(ctx context.Context, namespace, cluster string) ([]backend.Machine, error) {
	list, err := e.List(ctx)
	if err != nil {
		return nil, err
	}
	var out []backend.Machine
	for _, m := range list {
		if m.State == backend.Running && m.Owner.Object.Namespace == namespace && m.Owner.Cluster == cluster {
			out = append(out, m)
		}
	}
	return out, nil
}

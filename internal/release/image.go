package release

import (
	"bytes"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Annotations with the name of an image in a layout: the tag, and the full reference for containerd.
const (
	tagAnnotation       = "org.opencontainers.image.ref.name"
	referenceAnnotation = "io.containerd.image.name"
)

// artifactUser is an unprivileged user ID. The image has no users, and its files belong to root.
const artifactUser = "65532:65532"

// Image writes an OCI image layout with the program into a new directory, for [Write]. It is the image of the manager,
// which has no shell, runs unprivileged and writes only to volumes. The entrypoint and the user must fit the Deployment
// of the manager, which passes only arguments.
func (p program) Image(dir, reference string) error {
	var content bytes.Buffer
	if err := p.tar(&content, []file{
		{"slipway", 0o755, p.binary},
		{"etc/passwd", 0o644, []byte("slipway:x:65532:65532:slipway:/data:/sbin/nologin\n")},
	}); err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil },
		tarball.WithCompressedCaching, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return fmt.Errorf("writing the image of the manager: %w", err)
	}
	image, err := p.image(layer)
	if err != nil {
		return fmt.Errorf("writing the image of the manager: %w", err)
	}
	written, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("writing the image of the manager: %w", err)
	}
	names := map[string]string{tagAnnotation: p.Version, referenceAnnotation: reference}
	if err := written.AppendImage(image, layout.WithAnnotations(names)); err != nil {
		return fmt.Errorf("writing the image of the manager: %w", err)
	}
	return nil
}

func (p program) image(layer v1.Layer) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.AppendLayers(image, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = p.Platform()
	config.Created = v1.Time{Time: p.Time}
	config.Config = v1.Config{
		Entrypoint: []string{"/slipway"}, Cmd: []string{"manager"}, User: artifactUser, WorkingDir: "/", Env: []string{"PATH=/", "HOME=/data"},
		Labels: map[string]string{
			"org.opencontainers.image.title": "slipway", "org.opencontainers.image.version": p.Version,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(image, config)
}

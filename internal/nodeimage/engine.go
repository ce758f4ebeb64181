package nodeimage

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
)

// loadImage loads an image into the engine under a name. A build loads the base image with it.
func loadImage(ctx context.Context, docker Docker, ref string, img v1.Image) error {
	tag, err := name.NewTag(ref)
	if err != nil {
		return err
	}
	read, write := io.Pipe()
	go func() { write.CloseWithError(tarball.Write(tag, img, write)) }()
	defer read.Close()
	answer, err := docker.ImageLoad(ctx, read)
	if err != nil {
		return fmt.Errorf("loading an image into Docker: %w", err)
	}
	defer answer.Close()
	text, err := io.ReadAll(answer)
	if err != nil {
		return fmt.Errorf("loading an image into Docker: %w", err)
	}
	if strings.Contains(string(text), `"error"`) {
		return fmt.Errorf("loading an image into Docker: %s", lastLines(string(text)))
	}
	return nil
}

// labelOf returns a label of an image; empty if there is no such image or label. [Build] finds with it whether the
// existing image is up to date.
func labelOf(ctx context.Context, docker Docker, ref, label string) string {
	got, err := docker.ImageInspect(ctx, ref)
	if err != nil || got.Config == nil {
		return ""
	}
	return got.Config.Labels[label]
}

// preloading is the container in which the last step of a build adds container images to a node image.
type preloading struct {
	docker Docker
	// base is the node image without container images; archive contains the container images.
	base, archive string
}

// commit runs the preload script and commits the result as the image ref with the given configuration (Dockerfile
// instructions). The container and its volume are always removed.
func (p preloading) commit(ctx context.Context, ref string, changes []string) error {
	id, err := p.create(ctx)
	if err != nil {
		return err
	}
	defer p.docker.ContainerRemove(context.WithoutCancel(ctx), id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if err := p.copyFiles(ctx, id); err != nil {
		return fmt.Errorf("copying container images to the preloading container: %w", err)
	}
	if err := p.wait(ctx, id); err != nil {
		return err
	}
	_, err = p.docker.ContainerCommit(ctx, id, client.ContainerCommitOptions{Reference: ref, Changes: changes, Config: &container.Config{}})
	return err
}

// create creates the container. It may mount, which unpacking layers requires, and has no network.
func (p preloading) create(ctx context.Context) (string, error) {
	made, err := p.docker.ContainerCreate(ctx, client.ContainerCreateOptions{
		Config: &container.Config{Image: p.base, Entrypoint: []string{"/bin/sh", "-c", "sh /mnt/preload 2>&1"}},
		HostConfig: &container.HostConfig{
			NetworkMode: "none",
			CapAdd:      []string{"SYS_ADMIN"},
			SecurityOpt: []string{"seccomp=unconfined", "apparmor=unconfined"},
			Mounts:      []mount.Mount{{Type: mount.TypeVolume, Target: "/mnt"}},
		},
	})
	if err != nil {
		return "", fmt.Errorf("creating the preloading container: %w", err)
	}
	return made.ID, nil
}

// copyFiles copies the script and the archive to the container's volume.
func (p preloading) copyFiles(ctx context.Context, id string) error {
	read, write := io.Pipe()
	go func() { write.CloseWithError(p.writeFiles(write)) }()
	defer read.Close()
	_, err := p.docker.CopyToContainer(ctx, id, client.CopyToContainerOptions{DestinationPath: "/mnt", Content: read})
	return err
}

func (p preloading) writeFiles(w io.Writer) error {
	script, err := sources().ReadFile("preload")
	if err != nil {
		return err
	}
	out := tar.NewWriter(w)
	for _, e := range []entry{{name: "preload", mode: 0o755, data: script}, {name: "images.tar", mode: 0o644, file: p.archive}} {
		if err := writeEntry(out, e); err != nil {
			return err
		}
	}
	return out.Close()
}

// wait starts the container and waits for its end.
func (p preloading) wait(ctx context.Context, id string) error {
	if _, err := p.docker.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
		return fmt.Errorf("starting the preloading container: %w", err)
	}
	end := p.docker.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	select {
	case err := <-end.Error:
		return fmt.Errorf("waiting for the preloading container: %w", err)
	case how := <-end.Result:
		if how.StatusCode != 0 {
			return fmt.Errorf("preloading container images ended with status %d: %s", how.StatusCode, p.output(ctx, id))
		}
	}
	return nil
}

func (p preloading) output(ctx context.Context, id string) string {
	logs, err := p.docker.ContainerLogs(ctx, id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: "20"})
	if err != nil {
		return err.Error()
	}
	defer logs.Close()
	var text bytes.Buffer
	if _, err := stdcopy.StdCopy(&text, &text, logs); err != nil {
		return err.Error()
	}
	return lastLines(text.String())
}

// writeArchive writes container images to one file, which contains shared layers only once. The preload script loads
// the file, and bundles for SSH hosts contain it.
func writeArchive(file string, images []containerImage, arch string) error {
	all := map[name.Reference]v1.Image{}
	for _, c := range images {
		ref, err := name.ParseReference(c.ref)
		if err != nil {
			return err
		}
		if all[ref], err = layeredImage(c.layers, c.config, arch); err != nil {
			return fmt.Errorf("assembling %s: %w", c.ref, err)
		}
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := tarball.MultiRefWrite(all, f); err != nil {
		return fmt.Errorf("writing container images: %w", err)
	}
	return f.Close()
}

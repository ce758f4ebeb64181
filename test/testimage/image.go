package testimage

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/moby/moby/client"

	"github.com/slipwayhq/slipway/internal/local/backend"
)

// Version is the Kubernetes version in the label of the image.
const Version = "v1.36.3"

// idle makes a container of the image sleep until it is stopped.
const idle = `CMD ["/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done"]`

// Import creates the image under a name. It returns an error if Docker does not respond or a tool is missing on this
// host.
func Import(ctx context.Context, api *client.Client, name string) error {
	tools := map[string]string{"/bin/sh": "/bin/dash"}
	for _, tool := range []string{"base64", "cat", "chmod", "chown", "mkdir", "mv", "rm", "tail", "sleep", "timeout"} {
		tools["/bin/"+tool] = tool
	}
	return load(ctx, api, name, tools, idle)
}

// ImportNoNode creates an image that runs but has no shell, so it is not a node image.
func ImportNoNode(ctx context.Context, api *client.Client, name string) error {
	return load(ctx, api, name, map[string]string{"/bin/sleep": "sleep"}, `CMD ["/bin/sleep", "3600"]`)
}

func load(ctx context.Context, api *client.Client, name string, tools map[string]string, command string) error {
	files, err := contents(tools)
	if err != nil {
		return err
	}
	archive, err := pack(files)
	if err != nil {
		return err
	}
	r, err := api.ImageImport(ctx, client.ImageImportSource{Source: archive, SourceName: "-"}, name, client.ImageImportOptions{
		Changes: []string{command, "LABEL " + backend.LabelVersion + "=" + Version},
	})
	if err != nil {
		return fmt.Errorf("importing image %s: %w", name, err)
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return err
}

// contents returns the source of each file of an image with the given tools, including their libraries.
func contents(tools map[string]string) (map[string]string, error) {
	files := map[string]string{}
	for target, tool := range tools {
		path, err := exec.LookPath(tool)
		if err != nil {
			return nil, err
		}
		files[target] = path
	}
	for _, program := range slices.Collect(maps.Values(files)) {
		libraries, err := librariesOf(program)
		if err != nil {
			return nil, err
		}
		for _, l := range libraries {
			files[l] = l
		}
	}
	return files, nil
}

func librariesOf(program string) ([]string, error) {
	out, err := exec.Command("ldd", program).Output()
	if err != nil {
		return nil, fmt.Errorf("asking for the libraries of %s: %w", program, err)
	}
	var paths []string
	for _, m := range regexp.MustCompile(`(/\S+) \(0x`).FindAllStringSubmatch(string(out), -1) {
		paths = append(paths, m[1])
	}
	return paths, nil
}

func pack(files map[string]string) (io.Reader, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, target := range slices.Sorted(maps.Keys(files)) {
		content, err := os.ReadFile(files[target])
		if err != nil {
			return nil, err
		}
		header := &tar.Header{Name: strings.TrimPrefix(target, "/"), Mode: 0o755, Size: int64(len(content))}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(content); err != nil {
			return nil, err
		}
	}
	return &archive, w.Close()
}

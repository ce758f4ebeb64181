package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// cleanUpWithin is how long removing an installation may take.
const cleanUpWithin = 5 * time.Minute

// installation is a management cluster in a data directory of its own.
type installation struct {
	binary string
	folder string // temporary, around the data directory
}

func newInstallation(binary string) (*installation, error) {
	folder, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return nil, err
	}
	return &installation{binary: binary, folder: folder}, nil
}

func (in *installation) dataDir() string { return filepath.Join(in.folder, "data") }

func (in *installation) kubeconfig() string { return filepath.Join(in.dataDir(), "kubeconfig") }

// run runs a verb and returns what it printed. The error has what it complained about.
func (in *installation) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, in.binary, args...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return "", fmt.Errorf("slipway %s: %w: %s", args[0], err, strings.TrimSpace(problem.String()))
	}
	return out.String(), nil
}

// kubectl runs kubectl against the management cluster.
func (in *installation) kubectl(ctx context.Context, args ...string) error {
	_, err := in.run(ctx, append([]string{"kubectl", "--kubeconfig", in.kubeconfig()}, args...)...)
	return err
}

// up starts it and says how long that took, as someone at a terminal sees it.
func (in *installation) up(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	_, err := in.run(ctx, "up", "-d", "--data-dir", in.dataDir(), "--listen", "127.0.0.1:0")
	return time.Since(began), err
}

// down stops it.
func (in *installation) down(ctx context.Context) error {
	_, err := in.run(ctx, "down", "--data-dir", in.dataDir())
	return err
}

// remove removes it with all that is in it, also when ctx has ended.
func (in *installation) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpWithin)
	defer cancel()
	if _, err := in.run(ctx, "down", "--delete", "--data-dir", in.dataDir()); err != nil {
		return fmt.Errorf("%w (%s is left)", err, in.folder)
	}
	return os.RemoveAll(in.folder)
}

// pid is the process of the management cluster.
func (in *installation) pid(ctx context.Context) (int, error) {
	out, err := in.run(ctx, "status", "-o", "json", "--data-dir", in.dataDir())
	if err != nil {
		return 0, err
	}
	return parsePID([]byte(out))
}

// parsePID reads what `slipway status -o json` prints.
func parsePID(data []byte) (int, error) {
	var s struct {
		State      string `json:"state"`
		Management struct {
			PID int `json:"pid"`
		} `json:"management"`
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return 0, fmt.Errorf("read the status: %w", err)
	}
	if s.Management.PID == 0 {
		return 0, fmt.Errorf("the management cluster does not run: it is %s", s.State)
	}
	return s.Management.PID, nil
}

// client returns how to reach the management cluster as its administrator.
func (in *installation) client() (*rest.Config, error) {
	return clientcmd.BuildConfigFromFlags("", in.kubeconfig())
}

// with runs measurements on a fresh installation, and removes it whatever happens.
func (b *bench) with(ctx context.Context, measure func(*installation) error) (err error) {
	in, err := newInstallation(b.binary)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.remove(ctx)) }()
	return measure(in)
}

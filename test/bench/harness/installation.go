package harness

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

// Installation is a management cluster of `slipway up` in a temporary data directory.
type Installation struct {
	Folder string
	binary string
	env    []string
}

// WithInstallation calls do with an installation that has not been started, and removes the installation afterwards, also
// after an interrupt. The environment variables apply to all its commands.
func WithInstallation(ctx context.Context, binary string, do func(*Installation) error, env ...string) (err error) {
	folder, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return err
	}
	in := &Installation{Folder: folder, binary: binary, env: env}
	defer func() { err = errors.Join(err, in.remove(ctx)) }()
	return do(in)
}

func (in *Installation) DataDir() string { return filepath.Join(in.Folder, "data") }

func (in *Installation) Kubeconfig() string { return filepath.Join(in.DataDir(), "kubeconfig") }

// Output is the output and the cost of a command.
type Output struct {
	Text       string // standard output
	Seconds    float64
	MemoryPeak float64 // MB
}

func (in *Installation) Run(ctx context.Context, args ...string) (Output, error) {
	return in.RunProgram(ctx, in.binary, args...)
}

// RunProgram runs a program. The error contains the end of its error output.
func (in *Installation) RunProgram(ctx context.Context, name string, args ...string) (Output, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(append(os.Environ(), "NO_COLOR=1", "CLUSTERCTL_DISABLE_VERSIONCHECK=true"), in.env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return Output{}, fmt.Errorf("start %s: %w", name, err)
	}
	var out Output // the kernel's peak of a process that has exited would cover the benchmark, from which it was forked
	stop := Sample(context.WithoutCancel(ctx), 20*time.Millisecond, func() error {
		load, _ := ReadLoad(cmd.Process.Pid) // fails while the process exits
		out.MemoryPeak = max(out.MemoryPeak, load.Megabytes())
		return nil
	})
	err := cmd.Wait()
	out.Seconds = time.Since(start).Seconds()
	_ = stop() // the sampler returns no error
	out.Text = stdout.String()
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return out, fmt.Errorf("%s %s: %w: %s", filepath.Base(name), args[0], err, lastLines(stderr.String(), 10))
	}
	return out, nil
}

// Start starts the management cluster and returns the time.
func (in *Installation) Start(ctx context.Context, flags ...string) (seconds float64, err error) {
	out, err := in.Run(ctx, append([]string{"up", "-d", "--data-dir", in.DataDir(), "--listen", "127.0.0.1:0"}, flags...)...)
	return out.Seconds, err
}

// Up starts the management cluster and returns an administrator's client configuration without a rate limit.
func (in *Installation) Up(ctx context.Context, flags ...string) (*rest.Config, error) {
	if _, err := in.Start(ctx, flags...); err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", in.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.QPS = -1
	return config, nil
}

// Down stops the management cluster.
func (in *Installation) Down(ctx context.Context) error {
	_, err := in.Run(ctx, "down", "--data-dir", in.DataDir())
	return err
}

func (in *Installation) Kubectl(ctx context.Context, args ...string) error {
	_, err := in.Run(ctx, append([]string{"kubectl", "--kubeconfig", in.Kubeconfig()}, args...)...)
	return err
}

// DeleteCluster deletes a Cluster and waits until it is gone.
func (in *Installation) DeleteCluster(ctx context.Context, namespace, name string) error {
	_, err := in.Run(ctx, "delete", "cluster", name, "-n", namespace, "--data-dir", in.DataDir())
	return err
}

// DescribeCluster returns the tree of a Cluster with all conditions, for error messages.
func (in *Installation) DescribeCluster(ctx context.Context, namespace, name string) string {
	out, err := in.Run(ctx, "describe", "cluster", name, "-n", namespace, "--show-conditions", "all", "--data-dir", in.DataDir())
	if err != nil {
		return err.Error()
	}
	return "current state:\n" + strings.TrimSpace(out.Text)
}

func (in *Installation) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Minute)
	defer cancel()
	if _, err := in.Run(ctx, "down", "--delete", "--data-dir", in.DataDir()); err != nil {
		return fmt.Errorf("%w (%s was not removed)", err, in.Folder)
	}
	return os.RemoveAll(in.Folder)
}

// PID returns the process ID of the management cluster.
func (in *Installation) PID(ctx context.Context) (int, error) {
	out, err := in.Run(ctx, "status", "-o", "json", "--data-dir", in.DataDir())
	if err != nil {
		return 0, err
	}
	return parsePID([]byte(out.Text))
}

// parsePID reads the output of `slipway status -o json`.
func parsePID(data []byte) (int, error) {
	var s struct {
		State      string
		Management struct{ PID int }
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return 0, fmt.Errorf("parse the output of slipway status: %w", err)
	}
	if s.Management.PID == 0 {
		return 0, fmt.Errorf("the management cluster is not running: its state is %s", s.State)
	}
	return s.Management.PID, nil
}

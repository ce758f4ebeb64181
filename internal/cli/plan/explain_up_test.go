package plan

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// TestExplainOfUp: the manager of `slipway up` is found by the data directory, and knows its administrator by the certificate.
func TestExplainOfUp(t *testing.T) {
	binary, err := apiserver.Binary()
	if err != nil {
		t.Fatal(err)
	}
	temp, err := os.MkdirTemp("", "slipway-test-") // sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temp) })
	dir := filepath.Join(temp, "data")
	slipway := func(args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, binary, args...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := slipway("up", "--detach", "--data-dir", dir, "--listen", "127.0.0.1:0"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := slipway("down", "--data-dir", dir); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		out, err := slipway("explain", "cluster/demo", "--data-dir", dir)
		if err == nil || !strings.Contains(out, "does not respond") {
			t.Errorf("nothing runs any more: %v\n%s", err, out)
		}
	})
	manifest := filepath.Join(temp, "cluster.yaml")
	text := `{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: demo, namespace: default},
  spec: {infrastructureRef: {apiGroup: infrastructure.slipway.dev, kind: LocalCluster, name: none}}}`
	if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if out, err := slipway("kubectl", "--kubeconfig", kubeconfig, "create", "-f", manifest); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want, out := "Ends when it is created, or deleted: LocalCluster none", ""
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline) && !strings.Contains(out, want); {
		out, err = slipway("explain", "cluster/demo", "--data-dir", dir)
	}
	if err != nil || !strings.Contains(out, want) {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := slipway("explain", "cluster/demo", "--kubeconfig", kubeconfig, "--data-dir", dir, "-o", "yaml"); err != nil || !strings.Contains(out, "until: change") {
		t.Errorf("by the kubeconfig of that data directory: %v\n%s", err, out)
	}
	readsMetrics(t, dir, kubeconfig)
}

// readsMetrics checks that the administrator may read the metrics of the manager, which the page of `slipway ui` shows.
func readsMetrics(t *testing.T, dir, kubeconfig string) {
	t.Helper()
	e := term.Env{Out: io.Discard, Err: io.Discard, Getenv: os.Getenv, Now: time.Now}
	flags := &management.Flags{DataDir: dir, Kubeconfig: kubeconfig}
	c, err := flags.Connect(e)
	if err != nil {
		t.Fatal(err)
	}
	access := addAccessFlags(pflag.NewFlagSet("ui", pflag.ContinueOnError))(e, flags, c, true)
	if data, err := access.Metrics(t.Context()); err != nil || !strings.Contains(string(data), "controller_runtime_reconcile_total") {
		t.Errorf("metrics: %v\n%.500s", err, data)
	}
}

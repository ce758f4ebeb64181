package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// TestManager runs the controllers against a cluster that slipway did not start, with the flags of FL-01, FL-04, FL-06,
// PA-02 and CT-09.
func TestManager(t *testing.T) {
	binary, err := apiserver.Binary()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := apiserver.Start(t, apiserver.Options{}).Kubeconfig
	health, webhooks := freePort(t), freePort(t)
	ctx, cancel := context.WithCancel(context.Background())
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, binary, "manager", "--kubeconfig", kubeconfig, "--data-dir", filepath.Join(t.TempDir(), "data"),
		"--leader-elect", "--watch-filter", "mine", "--health-addr", "127.0.0.1:"+health, "--diagnostics-address", "0",
		"--webhook-host", "127.0.0.1", "--webhook-port", webhooks)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	eventually(t, short, "readyz", func() error {
		response, err := http.Get("http://127.0.0.1:" + health + "/readyz")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s", response.Status)
		}
		return nil
	})
	kubectl := func(args ...string) string {
		out, err := exec.Command(binary, append([]string{"kubectl", "--kubeconfig", kubeconfig}, args...)...).CombinedOutput()
		if err != nil {
			return err.Error() + ": " + string(out)
		}
		return string(out)
	}
	manifest := filepath.Join(t.TempDir(), "clusters.yaml")
	if err := os.WriteFile(manifest, []byte(twoClusters), 0o600); err != nil {
		t.Fatal(err)
	}
	untilContains(t, short, "the manifest is accepted", "theirs created", func() string { return kubectl("apply", "-f", manifest) })
	until(t, short, "the Cluster with the label is worked on", "cluster.cluster.x-k8s.io", func() string {
		return kubectl("get", "cluster", "mine", "-o", "jsonpath={.metadata.finalizers[0]}")
	})
	if got := kubectl("get", "cluster", "theirs", "-o", "jsonpath={.metadata.finalizers}"); got != "" {
		t.Errorf("the Cluster without the label is left alone, has %s", got)
	}
	if got := kubectl("-n", "slipway-system", "get", "lease", "-o", "name"); !strings.Contains(got, "controller-leader-election-capi") {
		t.Errorf("leases: %s", got)
	}
}

const twoClusters = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: mine, namespace: default, labels: {cluster.x-k8s.io/watch-filter: mine}}
spec: {infrastructureRef: {apiGroup: infrastructure.slipway.dev, kind: LocalCluster, name: none}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: theirs, namespace: default}
spec: {infrastructureRef: {apiGroup: infrastructure.slipway.dev, kind: LocalCluster, name: none}}
`

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

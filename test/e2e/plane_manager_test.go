package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// H3: the API goes on while the manager is killed three times: a watch sees every write, no write is refused, and the
// manager is there again each time.
func TestManagerOfUpKilled(t *testing.T) {
	in := newInstallation(t)
	in.up()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(in.dataDir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	maps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("default")
	counter, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "counter"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watch, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: counter.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	ctx, stop := context.WithCancel(t.Context())
	written := make(chan error, 1)
	go func() {
		for n := 1; ; n++ {
			counter.Data = map[string]string{"n": fmt.Sprint(n)}
			next, err := maps.Update(t.Context(), counter, metav1.UpdateOptions{})
			if err != nil {
				written <- fmt.Errorf("write %d: %w", n, err)
				return
			}
			counter = next
			if event, open := <-watch.ResultChan(); !open || event.Object.(*corev1.ConfigMap).Data["n"] != fmt.Sprint(n) {
				written <- fmt.Errorf("the watch saw %v after write %d", event, n)
				return
			}
			if ctx.Err() != nil {
				written <- nil
				return
			}
		}
	}()
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(file, []byte(twoClusters), 0o600); err != nil {
		t.Fatal(err)
	}
	server := in.planeStatus().Management.PID
	for n := 1; n <= 3; n++ {
		before := in.planeStatus().Management.Manager.PID
		if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, short, "another manager", func() error {
			m := in.planeStatus().Management.Manager
			if m.Restarts != n || m.PID == 0 || m.PID == before {
				return fmt.Errorf("%+v", m)
			}
			return nil
		})
		eventually(t, short, "its webhooks", func() error {
			_, err := in.try("kubectl", "create", "--dry-run=server", "-f", file)
			return err
		})
	}
	in.kubectl("create", "-f", file)
	eventually(t, short, "the plan of an object, from the manager that runs now", func() error {
		text, err := in.try("explain", "cluster/mine")
		if err == nil && !strings.Contains(text, "Ends when it is created, or deleted: LocalCluster none") {
			err = fmt.Errorf("%s", text)
		}
		return err
	})
	stop()
	if err := <-written; err != nil {
		t.Error(err)
	}
	status := in.planeStatus()
	if status.Management.PID != server || status.State != "Running" || !strings.Contains(status.Management.Manager.LastExit, "another process stopped it") {
		t.Errorf("status: %+v", status)
	}
	if text := in.run("status"); !strings.Contains(text, "Restarts:") {
		t.Errorf("the status does not tell of restarts:\n%s", text)
	}
	readDiagnostics(t, in, status.Management.Manager.Diagnostics)
}

// readDiagnostics does what docs/metrics.md says: a reader with a token of its own gets the metrics, and sets the level of the log.
func readDiagnostics(t *testing.T, in *installation, at string) { // FL-06, ME-03
	t.Helper()
	in.kubectl("create", "serviceaccount", "metrics")
	in.kubectl("create", "clusterrole", "metrics", "--verb=get,put", "--non-resource-url=/metrics", "--non-resource-url=/debug/flags/v")
	in.kubectl("create", "clusterrolebinding", "metrics", "--clusterrole=metrics", "--serviceaccount=default:metrics")
	token := strings.TrimSpace(in.run("kubectl", "create", "token", "metrics"))
	reader := &http.Client{Timeout: short, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for _, call := range []struct{ method, path, body, want string }{
		{http.MethodGet, "/metrics", "", "controller_runtime_reconcile_total"},
		{http.MethodPut, "/debug/flags/v", "3", ""},
		{http.MethodGet, "/debug/flags/v", "", "3"},
	} {
		request, err := http.NewRequestWithContext(t.Context(), call.method, at+call.path, strings.NewReader(call.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := reader.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(text), call.want) {
			t.Errorf("%s %s: %s, %v; %.300s", call.method, call.path, response.Status, err, text)
		}
	}
}

package e2e

import (
	"bytes"
	"crypto/tls"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// extensionImage builds the image of a project as its Makefile does, and runs it as its Deployment does: without root, on a file
// system that nothing can be written to, with the certificate of a folder and metrics apart. RT-23
func extensionImage(t *testing.T, dir string) {
	const image = "slipway-test-extension:v0.1.0"
	if out, err := exec.Command("make", "-C", dir, "image", "IMAGE="+image).CombinedOutput(); err != nil {
		t.Fatalf("make image: %v\n%s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("docker", "rmi", image).Run() })
	if size := docker(t, "image", "inspect", "-f", "{{.Size}} {{.Config.User}}", image); len(size[0]) > 8 || size[1] != "65532:65532" {
		t.Errorf("size and user of the image are %v", size)
	}
	id := docker(t, "run", "-d", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "-p", "127.0.0.1::9443", "-p", "127.0.0.1::8080",
		"-e", "EXTENSION_METRICS_ADDRESS=:8080", "-e", "EXTENSION_SHUTDOWN_DELAY=1s", image)[0]
	t.Cleanup(func() { _ = exec.Command("docker", "rm", "-f", id).Run() })
	at := func(port string) string { return docker(t, "port", id, port)[0] }
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	get := func(url string) string {
		r, err := client.Get(url)
		if err != nil {
			return err.Error()
		}
		defer func() { _ = r.Body.Close() }()
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		return r.Status + " " + body.String()
	}
	hooks, metrics := "https://"+at("9443"), "http://"+at("8080")
	until(t, short, "the extension is ready", "200 OK ok", func() string { return strings.TrimSpace(get(hooks + "/readyz")) })
	if got := get(metrics + "/metrics"); !strings.HasPrefix(got, "200 OK") || !strings.Contains(got, "go_goroutines") {
		t.Errorf("metrics: %.200s", got)
	}
	if got := get(hooks + "/metrics"); !strings.HasPrefix(got, "404") {
		t.Errorf("metrics on the port of the hooks: %.200s", got)
	}
	docker(t, "stop", id)
	if state := docker(t, "inspect", "-f", "{{.State.ExitCode}}", id); state[0] != "0" {
		logs, _ := exec.Command("docker", "logs", id).CombinedOutput()
		t.Errorf("it ended with %v:\n%s", state, logs)
	}
}

// extensionManifests applies what a project ships, but for the objects of cert-manager, which is not there: the API server and the
// webhooks take it. RT-01, RT-23
func (in *installation) extensionManifests(dir string) {
	in.t.Helper()
	manifests, err := filepath.Glob(filepath.Join(dir, "config", "*.yaml"))
	if err != nil || len(manifests) != 5 {
		in.t.Fatalf("%v %v", manifests, err)
	}
	for _, file := range manifests {
		data, err := os.ReadFile(file)
		if err != nil {
			in.t.Fatal(err)
		}
		if strings.Contains(string(data), "cert-manager.io") && !strings.Contains(string(data), "ExtensionConfig") {
			continue
		}
		if out := in.kubectl("apply", "-f", file); strings.Contains(strings.ToLower(out), "warning") {
			in.t.Errorf("%s: %s", file, out)
		}
	}
	untilContains(in.t, short, "it waits for its certificate", "Secret greeter-system/greeter-cert, which caBundle is taken from, does not exist", func() string {
		return in.condition("extensionconfig/greeter", "Discovered")
	})
	if out, err := in.try("extension", "refresh", "greeter", "--timeout", "2s"); err == nil || !strings.Contains(out+err.Error(), "does not exist; create it with key ca.crt") {
		in.t.Errorf("what cannot be discovered was refreshed: %v\n%s", err, out)
	}
	in.run("extension", "delete", "greeter")
	in.kubectl("delete", "namespace", "greeter-system", "--wait=false")
}

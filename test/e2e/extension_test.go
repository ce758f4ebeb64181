package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestExtension goes the way of docs/runtime-sdk.md: a new project, its test, a session with the running management
// cluster, a call, a recording and its replay; then the same with the example in Python. RT-01, RT-06, RT-22, RT-23.
func TestExtension(t *testing.T) {
	in := newInstallation(t)
	in.up()
	dir := filepath.Join(t.TempDir(), "greeter")
	in.extension("", "init", "greeter", "--dir", dir)
	for _, args := range [][]string{{"test", "./..."}, {"build", "-o", "greeter", "."}} {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	calls := filepath.Join(dir, "calls.jsonl")
	t.Run("go", func(t *testing.T) {
		in := in.with(t)
		s := in.session(dir, "record", calls, "--data-dir", in.dataDir, "--", "./greeter")
		in.createPainted(s, "greeter")
		in.callExtension(s, "greeter", filepath.Join(dir, "testdata"))
	})
	t.Run("replay", func(t *testing.T) {
		in := in.with(t)
		if out := in.extension(dir, "replay", calls, "--", "./greeter"); !strings.Contains(out, " 0 responses differ") {
			t.Errorf("the same build responds differently:\n%s", out)
		}
		cmd := exec.Command(in.binary, "extension", "replay", calls, "--", "python3", in.python("extension.py"))
		cmd.Dir = dir
		// The other implementation blocks as the first one does, but sends merge patches.
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), `patchType: "JSONPatch" → "JSONMergePatch"`) {
			t.Errorf("another build answers the same: %v\n%s", err, out)
		}
	})
	t.Run("python", func(t *testing.T) {
		in := in.with(t)
		s := in.session(dir, "run", "--name", "snake", "--data-dir", in.dataDir, "--", "python3", in.python("extension.py"))
		in.callExtension(s, "snake", in.python(""))
	})
	t.Run("image", func(t *testing.T) { extensionImage(t, dir) })
	t.Run("manifests", func(t *testing.T) { in.with(t).extensionManifests(dir) })
	t.Run("refresh", func(t *testing.T) { in.with(t).refreshExtension(dir) })
	t.Run("openapi", func(t *testing.T) { in.with(t).openAPI() })
	t.Run("versions", func(t *testing.T) { in.with(t).extensionVersions() })
}

// extensionVersions writes an ExtensionConfig as v1alpha1 and reads it as v1beta2, with the defaults that the webhook gave
// it. RT-01, RT-03.
func (in *installation) extensionVersions() {
	in.t.Helper()
	in.apply("apiVersion: runtime.cluster.x-k8s.io/v1alpha1\nkind: ExtensionConfig\nmetadata: {name: old}\n" +
		"spec: {clientConfig: {service: {namespace: default, name: svc}}}\n")
	const want = `{"clientConfig":{"service":{"name":"svc","namespace":"default","port":443}},"namespaceSelector":{}}`
	if got := in.get("extensionconfigs.v1beta2.runtime.cluster.x-k8s.io/old", "{.spec}"); got != want {
		in.t.Errorf("as v1beta2: %s, want %s", got, want)
	}
	in.run("extension", "delete", "old")
}

func (in *installation) python(file string) string {
	in.t.Helper()
	path, err := filepath.Abs(filepath.Join("../../examples/extension-python", file))
	if err != nil {
		in.t.Fatal(err)
	}
	return path
}

// extension runs a verb of the group in a folder.
func (in *installation) extension(dir string, args ...string) string {
	in.t.Helper()
	cmd := exec.Command(in.binary, append([]string{"extension"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		in.t.Fatalf("slipway extension %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// session is a verb that runs until it is interrupted.
type session struct {
	t   *testing.T
	cmd *exec.Cmd

	mu  sync.Mutex
	out bytes.Buffer
}

func (s *session) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

func (s *session) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

func (in *installation) session(dir string, args ...string) *session {
	in.t.Helper()
	s := &session{t: in.t, cmd: exec.Command(in.binary, append([]string{"extension"}, args...)...)}
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = dir, s, s
	if err := s.cmd.Start(); err != nil {
		in.t.Fatal(err)
	}
	in.t.Cleanup(func() { _ = s.cmd.Process.Signal(syscall.SIGTERM) })
	return s
}

// interrupt ends the session as Ctrl-C does.
func (s *session) interrupt() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("the session ended with %v\n%s", err, s)
	}
}

// callExtension sees the extension discovered, calls both of its handlers, and ends the session.
func (in *installation) callExtension(s *session, name, requests string) {
	in.t.Helper()
	untilContains(in.t, long, "discovery", "has discovered 2 handlers", s.String)
	var rows []struct {
		Name, Discovered string
		Handlers         []struct{ Name string }
	}
	if err := json.Unmarshal([]byte(in.run("extension", "list", "-o", "json")), &rows); err != nil {
		in.t.Fatal(err)
	}
	if len(rows) != 1 || rows[0].Name != name || rows[0].Discovered != "True" || len(rows[0].Handlers) != 2 {
		in.t.Errorf("the list is %+v", rows)
	}
	if out := in.run("extension", "call", "check-owner", "-f", filepath.Join(requests, "before-cluster-create.yaml")); !strings.Contains(out, "status: Success") {
		in.t.Errorf("check-owner: %s", out)
	}
	if out := in.run("extension", "call", "set-image."+name, "-f", filepath.Join(requests, "generate-patches.yaml")); !strings.Contains(out, "uid: workers") {
		in.t.Errorf("set-image: %s", out)
	}
	untilContains(in.t, short, "the call is shown", "GeneratePatches  set-image  Cluster default/demo  Success", s.String)
	s.interrupt()
	if out := in.run("extension", "list"); !strings.Contains(out, "There is no extension") {
		in.t.Errorf("after the session: %s", out)
	}
}

// refreshExtension sees an extension start again with a changed file, with the same registration, and be discovered once more; then the
// same by hand. RT-06, RT-23
func (in *installation) refreshExtension(dir string) {
	in.t.Helper()
	s := in.session(dir, "run", "--watch", "--data-dir", in.dataDir, "--", "go", "run", ".")
	untilContains(in.t, long, "discovery", "has discovered 2 handlers", s.String)
	uid := in.get("extensionconfig/greeter", "{.metadata.uid}")
	handlers := filepath.Join(dir, "handlers.go")
	data, err := os.ReadFile(handlers)
	if err != nil {
		in.t.Fatal(err)
	}
	change := func(to string) {
		in.t.Helper()
		if err := os.WriteFile(handlers, []byte(to), 0o600); err != nil {
			in.t.Fatal(err)
		}
	}
	change(string(data) + "\nfunc broken")
	untilContains(in.t, long, "it does not build", "It cannot be started", s.String)
	change(strings.Replace(string(data), `"set-image"`, `"set-the-image"`, 1))
	until(in.t, long, "the new handler is discovered", "check-owner.greeter set-the-image.greeter", func() string {
		return in.get("extensionconfig/greeter", "{.status.handlers[*].name}")
	})
	if again := in.get("extensionconfig/greeter", "{.metadata.uid}"); again != uid {
		in.t.Errorf("the registration is another one: %s, not %s", again, uid)
	}
	if out := in.run("extension", "refresh", "greeter"); !strings.Contains(out, "has discovered extension \"greeter\": 2 handlers") {
		in.t.Errorf("refresh: %s", out)
	}
	s.interrupt()
}

// openAPI reads the document where the management cluster serves it, beside its webhooks.
func (in *installation) openAPI() {
	in.t.Helper()
	out := in.kubectl("get", "validatingwebhookconfigurations", "-o", "jsonpath={.items[0].webhooks[0].clientConfig.url}")
	base, _, _ := strings.Cut(strings.TrimPrefix(out, "https://"), "/")
	ctx, cancel := context.WithTimeout(context.Background(), short)
	defer cancel()
	ca := in.kubectl("get", "validatingwebhookconfigurations", "-o", "jsonpath={.items[0].webhooks[0].clientConfig.caBundle}")
	client, err := trusting(ca)
	if err != nil {
		in.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://%s/runtime-sdk/openapi.yaml", base), nil)
	if err != nil {
		in.t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		in.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	served, err := io.ReadAll(response.Body)
	if err != nil || string(served) != in.extension("", "openapi") {
		in.t.Errorf("%s is not what the verb prints: %v\n%.300s", base, err, served)
	}
}

// trusting is a client that trusts the authority of a caBundle.
func trusting(caBundle string) (*http.Client, error) {
	pem, err := base64.StdEncoding.DecodeString(caBundle)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("no certificate in %q", caBundle)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}, nil
}

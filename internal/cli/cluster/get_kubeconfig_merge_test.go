package cluster

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
)

// of is the kubeconfig of a cluster at server.
func of(t *testing.T, server string) []byte {
	t.Helper()
	c := clientcmdapi.NewConfig()
	c.Clusters["demo"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: []byte("ca")}
	c.AuthInfos["demo-admin"] = &clientcmdapi.AuthInfo{ClientCertificateData: []byte("cert"), ClientKeyData: []byte("key")}
	c.Contexts["demo-admin@demo"] = &clientcmdapi.Context{Cluster: "demo", AuthInfo: "demo-admin"}
	c.CurrentContext = "demo-admin@demo"
	data, err := clientcmd.Write(*c)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// servers are those of the contexts in a file.
func servers(t *testing.T, path string) map[string]string {
	t.Helper()
	c, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{"current": c.CurrentContext}
	for name, context := range c.Contexts {
		got[name] = c.Clusters[context.Cluster].Server + " as " + string(c.AuthInfos[context.AuthInfo].ClientKeyData)
	}
	return got
}

func TestMerge(t *testing.T) {
	home := t.TempDir()
	var said bytes.Buffer
	e := term.Env{Err: &said, Getenv: func(name string) string { return map[string]string{"HOME": home}[name] }}
	file := filepath.Join(home, ".kube", "config")
	steps := []struct {
		reason, name, server string
		want                 map[string]string
	}{
		{"the file is made", "slipway-demo", "https://one", map[string]string{"current": "slipway-demo", "slipway-demo": "https://one as key"}},
		{"what is there stays", "slipway-team/demo", "https://two", map[string]string{
			"current": "slipway-team/demo", "slipway-demo": "https://one as key", "slipway-team/demo": "https://two as key"}},
		{"a cluster that was made once more takes its place", "slipway-demo", "https://three", map[string]string{
			"current": "slipway-demo", "slipway-demo": "https://three as key", "slipway-team/demo": "https://two as key"}},
	}
	for _, s := range steps {
		if err := mergeKubeconfig(e, &management.Flags{}, s.name, of(t, s.server)); err != nil {
			t.Fatalf("%s: %v", s.reason, err)
		}
		if diff := cmp.Diff(s.want, servers(t, file)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.reason, diff)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("it holds a key: %v, %v", info.Mode(), err)
	}
	if !strings.Contains(said.String(), `Context "slipway-demo" is in `+file+", and the current one there.\n") {
		t.Errorf("it says %q", said.String())
	}
}

// Verbs find the management cluster by its kubeconfig, which KUBECONFIG often names.
func TestMergeLeavesTheManagementCluster(t *testing.T) {
	home := t.TempDir()
	managed, other := filepath.Join(home, "managed"), filepath.Join(home, "other")
	if err := os.WriteFile(managed, of(t, "https://management"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := &management.Flags{Kubeconfig: managed}
	for list, want := range map[string]string{
		managed + ":" + other: other,
		managed:               "",
		other:                 other,
	} {
		got, err := mergeTarget(term.Env{Getenv: func(name string) string { return map[string]string{"KUBECONFIG": list}[name] }}, flags)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("KUBECONFIG=%s: got %q, %v", list, got, err)
		}
	}
}

func TestMergeOfWhatCannotBe(t *testing.T) {
	home := t.TempDir()
	e := term.Env{Err: &bytes.Buffer{}, Getenv: func(name string) string { return map[string]string{"HOME": home}[name] }}
	if err := mergeKubeconfig(e, &management.Flags{}, "x", []byte("apiVersion: v1\nkind: Config\n")); fault.As(err) == nil || fault.As(err).Reason != reasonNotMergeable {
		t.Errorf("no current context: %v", err)
	}
	file := filepath.Join(home, ".kube", "config")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := mergeKubeconfig(e, &management.Flags{}, "x", of(t, "https://one")); err == nil || !strings.Contains(err.Error(), file+" cannot be read") {
		t.Errorf("a file that is no kubeconfig: %v", err)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "{" {
		t.Errorf("it is left as it was: %q, %v", data, err)
	}
}

func TestContextName(t *testing.T) {
	if a, b, c := contextName("team", "a-demo"), contextName("team-a", "demo"), contextName("default", "team-a-demo"); a == b || b == c || a == c {
		t.Errorf("two clusters have one context: %s, %s, %s", a, b, c)
	}
	if a, b := contextName("default", "x"), contextName("team", "x"); a != "slipway-x" || b != "slipway-team/x" {
		t.Errorf("got %s and %s", a, b)
	}
}

package nodeimage

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

func TestVersionsOf(t *testing.T) {
	const source = "package constants\n\nconst (\n\t// DefaultEtcdVersion is \"9.9.9\"\n\tDefaultEtcdVersion = \"3.6.8-0\"\n\tCoreDNSVersion = \"v1.14.2\"\n\tPauseVersion = \"3.10.2\"\n)\n"
	got, err := versionsOf("v1.36.3", source)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(versions{Kubernetes: "v1.36.3", CoreDNS: "v1.14.2", Pause: "3.10.2", Etcd: "3.6.8-0"}, got); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	if _, err := versionsOf("v1.99.0", "package constants\n"); err == nil || !strings.Contains(err.Error(), "v1.99.0") {
		t.Errorf("a source without versions gave %v", err)
	}
}

func TestMainPackages(t *testing.T) {
	const plugins = "package plugin\n\nimport (\n\t// All.\n\t_ \"github.com/coredns/caddy/onevent\"\n\t_ \"github.com/coredns/coredns/plugin/azure\"\n\t_ \"github.com/coredns/coredns/plugin/kubernetes\"\n\t_ \"github.com/coredns/coredns/plugin/trace\" // big\n)\n"
	got, err := corednsMain(plugins)
	if err != nil {
		t.Fatal(err)
	}
	want := "package main\n\nimport (\n\t\"github.com/coredns/coredns/coremain\"\n\n\t_ \"github.com/coredns/caddy/onevent\"\n\t_ \"github.com/coredns/coredns/plugin/kubernetes\"\n)\n\nfunc main() { coremain.Run() }\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("CoreDNS (-want +got):\n%s", diff)
	}
	if _, err := corednsMain("package plugin\n"); err == nil {
		t.Error("a CoreDNS without its Kubernetes plugin was accepted")
	}
	const flannel = "package main\n\nimport (\n\t\"fmt\"\n\t_ \"x/backend/hostgw\"\n\t_ \"x/backend/udp\"\n\t_ \"x/backend/tencentvpc\"\n)\n"
	if diff := cmp.Diff("package main\n\nimport (\n\t\"fmt\"\n\t_ \"x/backend/hostgw\"\n)\n", flannelMain(flannel)); diff != "" {
		t.Errorf("flannel (-want +got):\n%s", diff)
	}
}

func TestParsePins(t *testing.T) {
	got, err := parsePins("# why\n\ngithub.com/a/b v1.0.0\n")
	if diff := cmp.Diff(map[string]string{"github.com/a/b": "v1.0.0"}, got); diff != "" || err != nil {
		t.Errorf("error %v, pins (-want +got):\n%s", err, diff)
	}
	for _, bad := range []string{"github.com/a/b", "github.com/a/b 1.0.0", "a b c"} {
		if _, err := parsePins(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// update is defined here and nowhere else; the only file it rewrites is images/node/pins.txt.
var update = flag.Bool("update", false, "rewrite images/node/pins.txt")

// TestPins holds images/node/pins.txt to Slipway's own go.mod: the versions that both need must be the same, or every
// package of Kubernetes is compiled twice.
func TestPins(t *testing.T) {
	ours := goMod(t, filepath.Join("..", "..", "go.mod"))
	if v := ours["k8s.io/kubernetes"]; v != DefaultVersion {
		t.Fatalf("DefaultVersion is %s, Slipway is built with %s", DefaultVersion, v)
	}
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{}
	for path, version := range goMod(t, filepath.Join(strings.TrimSpace(string(dir)), "go.mod")) {
		if version != "v0.0.0" && semver.Compare(ours[path], version) > 0 {
			want = append(want, path+" "+ours[path])
		}
	}
	slices.Sort(want)
	file := filepath.Join("..", "..", "images", "node", "pins.txt")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		var head []string
		for _, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(line, "#") {
				head = append(head, line)
			}
		}
		text = []byte(strings.Join(append(head, want...), "\n") + "\n")
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, contentLines(string(text))); diff != "" {
		t.Errorf("images/node/pins.txt; to rewrite it: go test ./internal/nodeimage -run Pins -update (-want +got):\n%s", diff)
	}
}

func goMod(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := modfile.Parse(file, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, r := range m.Require {
		out[r.Mod.Path] = r.Mod.Version
	}
	return out
}

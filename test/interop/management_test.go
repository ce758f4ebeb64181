package interop

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// patience only ends a test that would hang.
const patience = 3 * time.Minute

// management is a management cluster of Slipway.
type management struct {
	home
	binary, data, kubeconfig string
}

// start runs a management cluster without some of its providers; it ends with the test.
func start(t *testing.T, without ...string) *management {
	t.Helper()
	folder, err := os.MkdirTemp("", "interop-") // t.TempDir's path is too long for a unix socket
	if err != nil {
		t.Fatal(err)
	}
	m := &management{home: home{folder: folder}, binary: slipway(t), data: filepath.Join(folder, "data")}
	m.kubeconfig = filepath.Join(m.data, "kubeconfig")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if t.Failed() {
			t.Logf("the end of its log:\n%s", tail(filepath.Join(m.data, "log", "slipway.log")))
		}
		if r := m.run(ctx, m.binary, "down", "--delete", "--data-dir", m.data); r.err != nil {
			t.Errorf("slipway down: %v\n%s", r.err, r.said)
		}
		_ = os.RemoveAll(folder)
	})
	args := []string{"up", "--detach", "--listen", "127.0.0.1:0", "--data-dir", m.data}
	if len(without) > 0 {
		args = append(args, "--without", strings.Join(without, ","))
	}
	m.must(t, m.binary, args...)
	return m
}

func tail(path string) string {
	data, _ := os.ReadFile(path) // what is not there is not shown
	return string(data[max(0, len(data)-8000):])
}

// clusterctl runs the reference against the management cluster, and fails the test where it fails.
func (m *management) clusterctl(t *testing.T, args ...string) string {
	t.Helper()
	return m.must(t, tool(t, "clusterctl"), append(args, "--kubeconfig", m.kubeconfig)...)
}

func (m *management) slipway(t *testing.T, args ...string) string {
	t.Helper()
	return m.must(t, m.binary, append(args, "--kubeconfig", m.kubeconfig)...)
}

func (m *management) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return m.must(t, m.binary, append([]string{"kubectl", "--kubeconfig", m.kubeconfig}, args...)...)
}

// eventually waits until a question has the answer.
func eventually(t *testing.T, what string, isSo func() bool) {
	t.Helper()
	within(t, patience, what, isSo)
}

func within(t *testing.T, patience time.Duration, what string, isSo func() bool) {
	t.Helper()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !isSo() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// contains fails the test unless all texts are in out.
func contains(t *testing.T, out string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("%q is not in:\n%s", text, out)
		}
	}
}

// releases writes a configuration file that names the repositories of the release that `make interop` has written, and returns its
// path and the version.
func (h home) releases(t *testing.T) (config, version string) {
	t.Helper()
	dist, err := filepath.Abs("../../dist/interop")
	if err != nil {
		t.Fatal(err)
	}
	text := "providers:\n"
	for _, p := range released() {
		found, err := filepath.Glob(filepath.Join(dist, p[0], "v*", p[2]+"-components.yaml"))
		if err != nil || len(found) != 1 {
			t.Fatalf("one release of %s is needed, %d are there: run make interop (%v)", p[0], len(found), err)
		}
		version = filepath.Base(filepath.Dir(found[0]))
		name := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(p[0], "bootstrap-"), "control-plane-"), "infrastructure-")
		text += "- {name: " + name + ", type: " + p[1] + ", url: \"" + found[0] + "\"}\n"
	}
	return h.write(t, "clusterctl.yaml", text), version
}

// released are the providers of a release: label, type, and the type in names of files.
func released() [][3]string {
	return [][3]string{
		{"cluster-api", "CoreProvider", "core"}, {"bootstrap-kubeadm", "BootstrapProvider", "bootstrap"},
		{"control-plane-kubeadm", "ControlPlaneProvider", "control-plane"}, {"control-plane-hosted", "ControlPlaneProvider", "control-plane"},
		{"infrastructure-local", "InfrastructureProvider", "infrastructure"},
	}
}

// later adds a next patch release to the repositories of a configuration file, and returns the file of both.
func (h home) later(t *testing.T, config, version string) (string, string) {
	t.Helper()
	next := strings.TrimSuffix(version, ".0") + ".1"
	data, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	dist, err := filepath.Abs("../../dist/interop")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range released() {
		for _, v := range []string{version, next} {
			if err := os.CopyFS(filepath.Join(h.folder, "repositories", p[0], v), os.DirFS(filepath.Join(dist, p[0], version))); err != nil {
				t.Fatal(err)
			}
		}
	}
	return h.write(t, "later.yaml", strings.ReplaceAll(string(data), dist, filepath.Join(h.folder, "repositories"))), next
}

// CX-01, CX-11, CX-25, CX-26: the reference installs our release into a management cluster without nodes, where it finds a
// cert-manager that works, and plans the upgrade to the next release. Our verbs read what it has recorded, and delete it.
func TestReferenceInstallsRelease(t *testing.T) {
	m := start(t, "cluster-api", "bootstrap-kubeadm", "control-plane-kubeadm", "control-plane-hosted", "infrastructure-local")
	config, version := m.releases(t)
	m.clusterctl(t, "init", "--config", config, "--core", "cluster-api:"+version, "--bootstrap", "kubeadm:"+version,
		"--control-plane", "kubeadm:"+version+",hosted:"+version, "--infrastructure", "local:"+version)
	installed := m.kubectl(t, "get", "deployments,poddisruptionbudgets", "-A", "-o", "name")
	for _, kind := range []string{"deployment.apps/", "poddisruptionbudget.policy/"} {
		if n := strings.Count(installed, kind); n != len(released()) {
			t.Errorf("%d of %s, want %d:\n%s", n, kind, len(released()), installed)
		}
	}
	config, next := m.later(t, config, version)
	rows := func(plan string) (out []string) {
		for line := range strings.Lines(plan) {
			for _, p := range released() {
				if f := strings.Fields(line); len(f) > 0 && f[0] == p[0] {
					out = append(out, strings.Join(f, " "))
				}
			}
		}
		slices.Sort(out)
		return out
	}
	theirs, ours := rows(m.clusterctl(t, "upgrade", "plan", "--config", config)), rows(m.slipway(t, "upgrade", "plan", "--config", config))
	if len(theirs) != len(released()) || !strings.HasSuffix(theirs[0], version+" "+next) {
		t.Errorf("the plan of the reference: %q", theirs)
	}
	if d := cmp.Diff(theirs, ours); d != "" {
		t.Errorf("upgrade plan (-reference +slipway):\n%s", d)
	}
	m.slipway(t, "delete", "--all", "--config", config)
	if left := m.kubectl(t, "get", "deployments,poddisruptionbudgets,providers", "-A", "-o", "name"); left != "" {
		t.Errorf("slipway left %s", left)
	}
}

// CX-05, CX-08, CX-09: the reference makes a cluster of our template, shows it, and prints its kubeconfig as Slipway does. MV-01: it
// moves it to another management cluster.
func TestReferenceOnManagementCluster(t *testing.T) {
	m := start(t)
	config, version := m.releases(t)
	h := m.home
	h.more = []string{"KUBERNETES_VERSION=v1.36.3"}
	manifest := h.must(t, tool(t, "clusterctl"), "generate", "cluster", "demo", "--config", config, "--infrastructure", "local:"+version,
		"--flavor", "simulated", "--worker-machine-count", "2", "--kubeconfig", m.kubeconfig)
	ours := h.must(t, m.binary, "generate", "cluster", "demo", "--config", config, "--infrastructure", "local:"+version,
		"--flavor", "simulated", "--worker-machine-count", "2", "--kubeconfig", m.kubeconfig)
	if a, b := objects(t, manifest), objects(t, ours); strings.Join(a, "") != strings.Join(b, "") {
		t.Errorf("the manifest of the reference:\n%s\nof slipway:\n%s", manifest, ours)
	}
	m.kubectl(t, "apply", "-f", m.write(t, "demo.yaml", manifest))
	m.slipway(t, "wait", "cluster", "demo")
	contains(t, m.clusterctl(t, "describe", "cluster", "demo", "--show-conditions", "all"), "Cluster default/demo", "HostedControlPlane default/demo", "ControlPlaneInitialized")
	if theirs, ours := m.clusterctl(t, "get", "kubeconfig", "demo"), m.slipway(t, "get", "kubeconfig", "demo"); strings.TrimSpace(theirs) != strings.TrimSpace(ours) {
		t.Errorf("the kubeconfig of the reference:\n%s\nof slipway:\n%s", theirs, ours)
	}
	m.clusterctl(t, "alpha", "rollout", "pause", "machinedeployment/"+m.name(t, "machinedeployment"))
	m.slipway(t, "alpha", "rollout", "resume", "machinedeployment/"+m.name(t, "machinedeployment"))
	target := start(t)
	m.clusterctl(t, "move", "--to-kubeconfig", target.kubeconfig)
	contains(t, target.kubectl(t, "get", "clusters,hostedcontrolplanes,machinedeployments"), "cluster.cluster.x-k8s.io/demo", "hostedcontrolplane")
	if left := m.kubectl(t, "get", "clusters", "-o", "name"); left != "" {
		t.Errorf("the source still has %s", left)
	}
}

// name is the name of the only object of a kind.
func (m *management) name(t *testing.T, kind string) string {
	t.Helper()
	return m.kubectl(t, "get", kind, "-o", "jsonpath={.items[0].metadata.name}")
}

const otherMetadata = `apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries:
- {major: 1, minor: 14, contract: v1beta2}
`

const otherComponents = `apiVersion: v1
kind: Namespace
metadata: {name: other-system}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: other, namespace: other-system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: other, namespace: other-system}
spec:
  selector: {matchLabels: {app: other}}
  template:
    metadata: {labels: {app: other}}
    spec: {serviceAccountName: other, containers: [{name: manager, image: "other.example/manager:v1.14.2"}]}
`

// CX-01, CX-25: the reference adds a provider to `slipway up` as that is, with one flag as its book says, and installs no core beside
// the one that is built in. Our verbs do not take what is built in for installed.
func TestReferenceFindsWhatIsBuiltIn(t *testing.T) {
	m := start(t)
	text := "providers:\n"
	for _, p := range [][3]string{
		{"cluster-api", "CoreProvider", "core"}, {"bootstrap-kubeadm", "BootstrapProvider", "bootstrap"},
		{"control-plane-kubeadm", "ControlPlaneProvider", "control-plane"}, {"infrastructure-other", "InfrastructureProvider", "infrastructure"},
	} {
		folder := filepath.Join("repositories", p[0], "v1.14.2")
		m.write(t, filepath.Join(folder, "metadata.yaml"), otherMetadata)
		components := m.write(t, filepath.Join(folder, p[2]+"-components.yaml"), otherComponents)
		name := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(p[0], "bootstrap-"), "control-plane-"), "infrastructure-")
		text += "- {name: " + name + ", type: " + p[1] + ", url: \"" + components + "\"}\n"
	}
	config := m.write(t, "clusterctl.yaml", text)
	builtIn := []string{"bootstrap-kubeadm", "cluster-api", "control-plane-kubeadm"}
	records := func() (out []string) {
		t.Helper()
		out = strings.Fields(m.kubectl(t, "get", "providers", "-A", "-o", "jsonpath={.items[*].metadata.name}"))
		slices.Sort(out)
		return out
	}
	if d := cmp.Diff(builtIn, records()); d != "" {
		t.Fatalf("records of a new management cluster (-want +got):\n%s", d)
	}
	m.clusterctl(t, "init", "--config", config, "--infrastructure", "other")
	if d := cmp.Diff([]string{"bootstrap-kubeadm", "cluster-api", "control-plane-kubeadm", "infrastructure-other"}, records()); d != "" {
		t.Errorf("records after init (-want +got):\n%s", d)
	}
	if deployments := strings.Fields(m.kubectl(t, "get", "deployments", "-A", "-o", "name")); !slices.Equal(deployments, []string{"deployment.apps/other"}) {
		t.Errorf("init installed %v", deployments)
	}
	plan := m.clusterctl(t, "upgrade", "plan", "--config", config)
	contains(t, plan, "infrastructure-other", "You are already up to date!")
	m.slipway(t, "delete", "--all", "--config", config)
	if d := cmp.Diff(builtIn, records()); d != "" {
		t.Errorf("records after slipway delete --all (-want +got):\n%s", d)
	}
}

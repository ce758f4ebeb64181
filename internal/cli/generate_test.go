package cli_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/cli"
	"github.com/slipwayhq/slipway/internal/cli/provider"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
)

const clusterTemplate = `apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: "${CLUSTER_NAME}"}
spec: {topology: {classRef: {name: "${CLASS:=quick}"}, version: "${KUBERNETES_VERSION}", variables: [{name: zone, value: "${ZONE}"}]}}
`

const classFile = `apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {name: quick}
spec: {variables: [{name: "${CLASS_VARIABLE:=zone}"}]}
`

const componentsFile = `apiVersion: v1
kind: Namespace
metadata: {name: infra-system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: controller, namespace: infra-system}
spec: {template: {spec: {containers: [{name: manager, image: "example.com/manager:v1.0.0", args: ["--level=${LEVEL:=1}"]}]}}}
`

const metadataFile = `apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries: [{major: 1, minor: 0, contract: v1beta2}]
`

// world is a folder with a configuration file and a repository, and no management cluster.
type world struct{ folder string }

func newWorld(t *testing.T) world {
	t.Helper()
	w := world{t.TempDir()}
	release := "repository/infrastructure-test/v1.0.0/"
	w.write(t, release+"infrastructure-components.yaml", componentsFile)
	w.write(t, release+"metadata.yaml", metadataFile)
	w.write(t, release+"cluster-template.yaml", clusterTemplate)
	w.write(t, release+"clusterclass-quick.yaml", classFile)
	w.write(t, "clusterctl.yaml", "providers: [{name: test, type: InfrastructureProvider, url: "+
		filepath.Join(w.folder, "repository/infrastructure-test/v1.0.0/infrastructure-components.yaml")+"}]\nZONE: east\n")
	return w
}

func (w world) write(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(w.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (w world) env(in string, out *bytes.Buffer) term.Env {
	return term.Env{In: strings.NewReader(in), Out: out, Err: out, Now: time.Now, Getenv: func(name string) string {
		return map[string]string{"HOME": w.folder}[name]
	}}
}

func (w world) run(t *testing.T, in string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := cli.GenerateCommand(w.env(in, &out))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append(args, "--config", filepath.Join(w.folder, "clusterctl.yaml")))
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func wants(t *testing.T, out string, err error, texts ...string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("%q is not in:\n%s", text, out)
		}
	}
}

func refused(t *testing.T, err error, kind fault.Kind, texts ...string) {
	t.Helper()
	if fault.KindOf(err) != kind {
		t.Fatalf("error %v, want one of kind %s", err, kind)
	}
	for _, text := range texts {
		if !strings.Contains(fault.UserMessage(err), text) {
			t.Errorf("%q is not in: %s", text, fault.UserMessage(err))
		}
	}
}

// CX-05: the contract of clusterctl has another name for a flag; a flavor that is not there is answered with those that are, and a variable
// without a value in a ClusterClass file with the name of that file.
func TestContractNames(t *testing.T) {
	w := newWorld(t)
	w.write(t, "repository/infrastructure-test/v1.0.0/cluster-template-count.yaml", clusterTemplate+"# ${CONTROL_PLANE_MACHINE_COUNT}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: count}\ndata: {count: \"${CONTROL_PLANE_MACHINE_COUNT}\"}\n")
	for _, flag := range []string{"--control-plane-machine-count", "--controlplane-machine-count"} {
		out, err := w.run(t, "", "cluster", "demo", "-i", "test:v1.0.0", "-f", "count", "-n", "team", "--kubernetes-version", "v1.36.3", flag, "3")
		wants(t, out, err, "count: \"3\"")
	}
	_, err := w.run(t, "", "cluster", "demo", "-i", "test:v1.0.0", "-f", "nope", "-n", "team", "--kubernetes-version", "v1.36.3")
	refused(t, err, fault.Gone, "available files: cluster-template-count.yaml, cluster-template.yaml")
	w.write(t, "repository/infrastructure-test/v1.0.0/clusterclass-quick.yaml", strings.Replace(classFile, "${CLASS_VARIABLE:=zone}", "${NOPE}", 1))
	_, err = w.run(t, "", "cluster", "demo", "-i", "test:v1.0.0", "-n", "team", "--kubernetes-version", "v1.36.3")
	refused(t, err, fault.Invalid, "clusterclass-quick.yaml: no value is set for: NOPE")
}

// CX-05: a template of a release, with the class that it names; everything is in the namespace.
func TestClusterFromARelease(t *testing.T) {
	w := newWorld(t)
	out, err := w.run(t, "", "cluster", "demo", "-i", "test:v1.0.0", "-n", "team", "--kubernetes-version", "v1.36.3")
	wants(t, out, err, "name: demo", "version: v1.36.3", "value: east", "kind: ClusterClass", "name: zone")
	if n := strings.Count(out, "namespace: team"); n != 2 {
		t.Errorf("%d objects are in the namespace, want 2:\n%s", n, out)
	}
	if strings.Index(out, "kind: ClusterClass") > strings.Index(out, "name: demo") {
		t.Errorf("the class comes after the cluster:\n%s", out)
	}
	file := filepath.Join(w.folder, "out.yaml")
	_, err = w.run(t, "", "cluster", "demo", "-i", "test", "--kubernetes-version", "v1.36.3", "--write-to", file)
	written, readErr := os.ReadFile(file)
	wants(t, string(written), err, "namespace: default")
	if readErr != nil {
		t.Error(readErr)
	}
	out, err = w.run(t, "", "cluster", "--list-variables", "-i", "test")
	wants(t, out, err, "Required Variables:\n  - CLUSTER_NAME\n  - KUBERNETES_VERSION\n  - ZONE\nOptional Variables:\n  - CLASS (default \"quick\")\n")
}

// CX-05: a template from the standard input, a file and a server; the number of machines.
// A number that the template does not read is told, for templates of this build with the flavor that reads it; others are silent.
func TestNumbersWithoutEffect(t *testing.T) {
	w := newWorld(t)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"of this build": {[]string{"-i", "local", "--control-plane-machine-count", "3"}, "Warning: --control-plane-machine-count has no effect: the template does not read CONTROL_PLANE_MACHINE_COUNT; its control plane has no Machines, that of flavor kubeadm has\n"},
		"read":          {[]string{"-i", "local", "--flavor", "kubeadm", "--control-plane-machine-count", "3", "--worker-machine-count", "2"}, ""},
		"of others":     {[]string{"-i", "test:v1.0.0", "--worker-machine-count", "2"}, "Warning: --worker-machine-count has no effect: the template does not read WORKER_MACHINE_COUNT\n"},
		"not given":     {[]string{"-i", "test:v1.0.0"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := w.run(t, "", append([]string{"cluster", "demo", "-n", "team", "--kubernetes-version", "v1.36.3"}, tc.args...)...)
			wants(t, out, err, "name: demo")
			if got := strings.Contains(out, "Warning:"); got != (tc.want != "") || !strings.Contains(out, tc.want) {
				t.Errorf("want %q in\n%s", tc.want, out)
			}
		})
	}
}

func TestClusterFromAnAddress(t *testing.T) {
	w := newWorld(t)
	const text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"${CLUSTER_NAME}\"}\ndata: {machines: \"${CONTROL_PLANE_MACHINE_COUNT}/${WORKER_MACHINE_COUNT}\"}\n"
	w.write(t, "template.yaml", text)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/template.yaml" {
			http.NotFound(rw, r)
			return
		}
		_, _ = rw.Write([]byte(text))
	}))
	defer server.Close()
	for _, from := range []string{"-", filepath.Join(w.folder, "template.yaml"), server.URL + "/template.yaml"} {
		out, err := w.run(t, text, "cluster", "demo", "--from", from, "--worker-machine-count", "3")
		wants(t, out, err, "name: demo", "namespace: default", "machines: 1/3")
	}
	_, err := w.run(t, "", "cluster", "demo", "--from", server.URL+"/other.yaml")
	refused(t, err, fault.Gone, "has no template at /other.yaml")
	_, err = w.run(t, "", "cluster", "demo", "--from", "http://example.com/template.yaml")
	refused(t, err, fault.Invalid, "does not use TLS")
	_, err = w.run(t, text, "cluster", "demo", "--from", "-", "--control-plane-machine-count", "0")
	refused(t, err, fault.Invalid, "use 1 or more")
}

// CX-05: what cannot be is refused, with what to do.
func TestClusterRefuses(t *testing.T) {
	w := newWorld(t)
	for name, tc := range map[string]struct {
		args []string
		kind fault.Kind
		want string
	}{
		"two sources":         {[]string{"cluster", "demo", "--from", "-", "-i", "test"}, fault.Invalid, "use only one of"},
		"a key without a map": {[]string{"cluster", "demo", "--from-config-map-key", "x"}, fault.Invalid, "--from-config-map"},
		"no name":             {[]string{"cluster"}, fault.Invalid, "NAME"},
		"a wrong name":        {[]string{"cluster", "Demo", "-i", "test"}, fault.Invalid, "not a valid cluster name"},
		"a wrong version":     {[]string{"cluster", "demo", "-i", "test", "--kubernetes-version", "new"}, fault.Invalid, "v1.36.3"},
		"a missing variable":  {[]string{"cluster", "demo", "-i", "test"}, fault.Invalid, "KUBERNETES_VERSION"},
		"a missing flavor":    {[]string{"cluster", "demo", "-i", "test", "-f", "large"}, fault.Gone, "cluster-template-large.yaml"},
		"no cluster":          {[]string{"cluster", "demo"}, fault.Unreachable, "slipway up"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.run(t, "", tc.args...)
			refused(t, err, tc.kind, tc.want)
		})
	}
}

// CX-06: the objects of a provider in their namespace, with its variables or without; its description.
func TestProvider(t *testing.T) {
	w := newWorld(t)
	out, err := w.run(t, "", "provider", "-i", "test:v1.0.0", "-n", "elsewhere")
	wants(t, out, err, "--level=1", "namespace: elsewhere", "cluster.x-k8s.io/provider: infrastructure-test")
	out, err = w.run(t, "", "provider", "-i", "test", "--raw")
	wants(t, out, err, "--level=${LEVEL:=1}")
	out, err = w.run(t, "", "provider", "-i", "test", "--describe")
	wants(t, out, err, "Name:             test\n", "Type:             InfrastructureProvider\n", "Version:          v1.0.0\n",
		"File:             infrastructure-components.yaml\n", "TargetNamespace:  infra-system\n", "Variables:\n  - LEVEL\n", "Images:\n  - example.com/manager:v1.0.0\n")
	_, err = w.run(t, "", "provider", "-i", "test", "-b", "kubeadm")
	refused(t, err, fault.Invalid, "exactly one provider")
}

// CX-07: the text stays as it is, but for its variables.
func TestYAML(t *testing.T) {
	w := newWorld(t)
	out, err := w.run(t, "a:   ${ZONE} # kept\nb: ${B:=2}\n", "yaml")
	wants(t, out, err, "a:   east # kept\nb: 2\n")
	out, err = w.run(t, "a: ${ZONE}\nb: ${B:=2}\n", "yaml", "--list-variables")
	wants(t, out, err, "Required Variables:\n  - ZONE\nOptional Variables:\n  - B (default \"2\")\n")
	_, err = w.run(t, "a: ${C} ${A}\n", "yaml")
	refused(t, err, fault.Invalid, "A, C")
}

// CX-14: the repositories of built-in providers and of those of the configuration file.
func TestConfigRepositories(t *testing.T) {
	w := newWorld(t)
	for format, want := range map[string]string{"text": "InfrastructureProvider", "yaml": "ProviderType: InfrastructureProvider"} {
		var out bytes.Buffer
		cmd := provider.ConfigCommand(w.env("", &out))
		cmd.SetArgs([]string{"repositories", "-o", format, "--config", filepath.Join(w.folder, "clusterctl.yaml")})
		err := cmd.ExecuteContext(t.Context())
		wants(t, out.String(), err, want, "infrastructure-components.yaml", filepath.Join(w.folder, "repository/infrastructure-test/v1.0.0")+"/", "https://github.com/kubernetes-sigs/cluster-api/releases/latest/")
	}
}

// CX-18: what is converted comes out, how much it was is said beside it; a file that cannot be converted is not written over.
func TestConvert(t *testing.T) {
	w := newWorld(t)
	const older = "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Machine\nmetadata: {name: m}\nspec: {clusterName: c}\n"
	run := func(in string, args ...string) (string, error) {
		var out bytes.Buffer
		cmd := provider.ConvertCommand(w.env(in, &out))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(args)
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	out, err := run(older)
	wants(t, out, err, "apiVersion: cluster.x-k8s.io/v1beta2", "1 objects converted to v1beta2, 0 left as they are.")
	w.write(t, "m.yaml", older)
	file := filepath.Join(w.folder, "m.yaml")
	_, err = run("", file, "--output", file)
	written, readErr := os.ReadFile(file)
	wants(t, string(written), err, "cluster.x-k8s.io/v1beta2")
	w.write(t, "m.yaml", older+"extra: true\n")
	_, err = run("", file, "--output", file)
	refused(t, err, fault.Invalid, "extra")
	if written, err := os.ReadFile(file); err != nil || readErr != nil || !strings.Contains(string(written), "v1beta1") {
		t.Errorf("%v, %v: a file that was not converted is:\n%s", readErr, err, written)
	}
	_, err = run(older, "--to-version", "v1beta3")
	refused(t, err, fault.Invalid, "use v1beta2")
}

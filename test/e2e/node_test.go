package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
)

// foreignImage is that of the provider of other people in small. No such registry exists.
const foreignImage = "foreign.example/admission:v1"

// buildForeign compiles the provider into an image.
func buildForeign(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-pgo=off", "-o", filepath.Join(dir, "admission"), "../foreign/admission")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	file := "FROM scratch\nCOPY admission /admission\nUSER 65532\nENTRYPOINT [\"/admission\"]\n"
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	docker(t, "build", "--quiet", "--tag", foreignImage, dir)
	t.Cleanup(func() { _ = exec.Command("docker", "rmi", foreignImage).Run() })
}

// foreignManifest is the provider's, with a certificate for its webhooks.
func foreignManifest(t *testing.T) string {
	t.Helper()
	folder := pki.Folder{Path: t.TempDir(), Now: time.Now}
	ca, err := folder.Authority("ca", pki.Authority{Name: "foreign"})
	if err != nil {
		t.Fatal(err)
	}
	pair, _, err := folder.Leaf("serving", ca, pki.Leaf{User: "webhook", Names: []string{"webhook.foreign-system.svc"}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/foreign.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b64 := base64.StdEncoding.EncodeToString
	return strings.NewReplacer("@IMAGE@", foreignImage, "@CA@", b64(ca.CertPEM), "@CERT@", b64(pair.CertPEM), "@KEY@", b64(pair.KeyPEM)).Replace(string(text))
}

// A provider that is not ours runs on the node of an embedded management cluster: its Pod reaches the API server, the API
// server reaches its webhooks. The node is recreated when it is lost, survives a restart of Slipway, and goes when asked.
func TestNodeOfTheManagementCluster(t *testing.T) {
	buildForeign(t)
	in := newInstallation(t)
	in.run("up", "--detach", "--listen", in.listen, "--node")
	if s := in.run("status"); !strings.Contains(s, "Node:") || !strings.Contains(s, "Ready, in container") {
		t.Errorf("status does not show the node:\n%s", s)
	}
	in.run("image", "load", foreignImage)
	in.apply(foreignManifest(t))
	in.available("foreign-system", "manager")

	in.kubectl("create", "namespace", "tenant")
	in.kubectl("label", "namespace", "tenant", "foreign=yes")
	in.webhooksAnswer("first")
	t.Run("privileged Pods are refused", func(t *testing.T) { in.with(t).privilegedPodIsRefused() })

	in.run("down")
	in.run("up", "--detach", "--listen", in.listen) // the flag is remembered
	in.available("foreign-system", "manager")
	in.webhooksAnswer("second")

	node := docker(t, "ps", "-q", "--filter", "label=dev.slipway.object=slipway-system/management-node", "--filter", "label=dev.slipway.instance="+in.instance())
	if len(node) != 1 {
		t.Fatalf("containers of the node: %v", node)
	}
	docker(t, "rm", "-f", "-v", node[0])
	until(t, long, "a new node", "True", func() string {
		if again := docker(t, "ps", "-q", "--filter", "label=dev.slipway.instance="+in.instance()); len(again) != 1 || again[0] == node[0] {
			return fmt.Sprint(again)
		}
		return in.get("node/management-node", `{.status.conditions[?(@.type=="Ready")].status}`)
	})

	in.run("down")
	in.run("up", "--detach", "--listen", in.listen, "--node=false")
	if left := in.leftovers(in.instance()); len(left) > 0 {
		t.Errorf("left on the host: %v", left)
	}
	if out := in.kubectl("get", "nodes", "-o", "name"); strings.TrimSpace(out) != "" {
		t.Errorf("Nodes: %s", out)
	}
}

// available waits for a Deployment.
func (in *installation) available(namespace, name string) {
	in.t.Helper()
	eventually(in.t, long, "Deployment "+namespace+"/"+name, func() error {
		out, err := in.try("kubectl", "get", "deployment", name, "-n", namespace, "-o", `jsonpath={.status.observedGeneration} {.status.readyReplicas} {.status.unavailableReplicas}`)
		if err != nil || strings.TrimSpace(out) != "1 1" {
			pods, _ := in.try("kubectl", "get", "pods,events", "-n", namespace)
			return fmt.Errorf("%s, %w\n%s", out, err, pods)
		}
		return nil
	})
}

// webhooksAnswer creates ConfigMaps that the provider defaults and refuses.
func (in *installation) webhooksAnswer(name string) {
	in.t.Helper()
	eventually(in.t, short, "webhooks", func() error {
		_, err := in.try("kubectl", "create", "configmap", name, "-n", "tenant", "--from-literal=size=small")
		return err
	})
	out := in.kubectl("get", "configmap", name, "-n", "tenant", "-o", "jsonpath={.data}")
	data := map[string]string{}
	if err := json.Unmarshal([]byte(out), &data); err != nil || data["region"] != "moon" {
		in.t.Errorf("not defaulted: %s, %v", out, err)
	}
	_, err := in.try("kubectl", "create", "configmap", name+"-large", "-n", "tenant", "--from-literal=size=impossible")
	if err == nil || !strings.Contains(err.Error(), "nothing is that large") {
		in.t.Errorf("not refused: %v", err)
	}
}

// privilegedPodIsRefused: root in the node is root on the host.
func (in *installation) privilegedPodIsRefused() {
	_, err := in.try("kubectl", "run", "x", "-n", "tenant", "--image", foreignImage, "--privileged")
	if err == nil || !strings.Contains(err.Error(), "PodSecurity") {
		in.t.Errorf("a privileged Pod is created: %v", err)
	}
	_, err = in.try("kubectl", "run", "x", "-n", "tenant", "--image", foreignImage)
	if err == nil || !strings.Contains(err.Error(), "kubectl label namespace tenant slipway.dev/management-node=allowed") {
		in.t.Errorf("a Pod of a namespace that is not a provider's: %v", err)
	}
}

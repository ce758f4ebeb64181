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

	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// The provider of other people, as its authors publish it: a Go module with the program and its manifests.
const (
	thirdPartyModule  = "sigs.k8s.io/cluster-api-provider-aws/v2"
	thirdPartyVersion = "v2.13.0"
	thirdPartyImage   = "thirdparty.example/cluster-api-provider-aws:" + thirdPartyVersion
	thirdPartyHome    = "capa-system"
)

// A provider that is not ours, unchanged, runs on the node of an embedded management cluster without cert-manager: its Deployment
// becomes available, its webhooks default and refuse, and what it lacks, here a way to its cloud, can be read. It is compiled from its
// module, which takes minutes: `make thirdparty` runs it.
func TestThirdPartyProvider(t *testing.T) {
	if os.Getenv("SLIPWAY_E2E_THIRDPARTY") == "" {
		t.Skip("make thirdparty runs this test")
	}
	config := thirdPartyRelease(t)
	in := newInstallation(t)
	credentials := base64.StdEncoding.EncodeToString([]byte("[default]\naws_access_key_id = none\naws_secret_access_key = none\n"))
	in.env = []string{"AWS_B64ENCODED_CREDENTIALS=" + credentials}
	in.run("up", "--detach", "--listen", in.listen, "--node")
	in.run("image", "load", thirdPartyImage)
	began := time.Now()
	out := in.run("init", "--config", config, "--infrastructure", "aws:"+thirdPartyVersion, "--wait-providers")
	t.Logf("init --wait-providers took %s", time.Since(began).Round(time.Second))
	if strings.Contains(out, credentials) {
		t.Errorf("init prints the credentials:\n%s", out)
	}
	in.available(thirdPartyHome, "capa-controller-manager")

	t.Run("certificates come from Slipway", func(t *testing.T) { in.with(t).certificatesAreOurs() })
	t.Run("webhooks default and refuse", func(t *testing.T) { in.with(t).thirdPartyWebhooks() })
	t.Run("what it lacks can be read", func(t *testing.T) { in.with(t).thirdPartyLacks() })
	in.run("delete", "--infrastructure", "aws", "--include-namespace", "--config", config)
	if left := strings.TrimSpace(in.kubectl("get", "deployments,pods", "-n", thirdPartyHome, "-o", "name")); left != "" {
		t.Errorf("delete left %s", left)
	}
}

// thirdPartyRelease compiles the provider into an image, writes its manifests as a repository, and returns the configuration file
// that names it.
func thirdPartyRelease(t *testing.T) (config string) {
	t.Helper()
	dir := t.TempDir()
	output := func(name string, args ...string) []byte {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOBIN="+dir, "GOFLAGS=", "GOWORK=off")
		out, err := cmd.Output()
		if err != nil {
			var said []byte
			if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // Output returns it as it is
				said = exit.Stderr
			}
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, said)
		}
		return out
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(output("go", "mod", "download", "-json", thirdPartyModule+"@"+thirdPartyVersion), &module); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	output("go", "install", "-ldflags=-s -w", thirdPartyModule+"@"+thirdPartyVersion)
	t.Logf("compiling the provider took %s", time.Since(began).Round(time.Second))
	write := func(name, content string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("Dockerfile", "FROM scratch\nCOPY cluster-api-provider-aws /manager\nUSER 65532\nENTRYPOINT [\"/manager\"]\n")
	docker(t, "build", "--quiet", "--tag", thirdPartyImage, dir)
	t.Cleanup(func() { _ = exec.Command("docker", "rmi", thirdPartyImage).Run() })

	binary, err := apiserver.Binary()
	if err != nil {
		t.Fatal(err)
	}
	manifest := string(output(binary, "kubectl", "kustomize", filepath.Join(module.Dir, "config", "default")))
	released := strings.NewReplacer(
		"gcr.io/k8s-staging-cluster-api-aws/cluster-api-aws-controller:latest", thirdPartyImage,
		"imagePullPolicy: Always", "imagePullPolicy: IfNotPresent", // as in its releases
	).Replace(manifest)
	if !strings.Contains(released, thirdPartyImage) {
		t.Fatal("the manifest does not have the image that is replaced")
	}
	metadata, err := os.ReadFile(filepath.Join(module.Dir, "metadata.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join("repository", "infrastructure-aws", thirdPartyVersion)
	write(filepath.Join(folder, "metadata.yaml"), string(metadata))
	components := write(filepath.Join(folder, "infrastructure-components.yaml"), released)
	return write("clusterctl.yaml", fmt.Sprintf("providers:\n- {name: aws, type: InfrastructureProvider, url: %q}\n", components))
}

// certificatesAreOurs: the Secret of the webhooks was issued for the provider's Certificate, and there is no cert-manager.
func (in *installation) certificatesAreOurs() {
	until(in.t, short, "the Certificate", "True", func() string {
		return in.getIn(thirdPartyHome, "certificate.cert-manager.io/capa-serving-cert", `{.status.conditions[?(@.type=="Ready")].status}`)
	})
	if managers := in.getManagers(thirdPartyHome, "secret/capa-webhook-service-cert"); !strings.Contains(managers, "slipway-certificates") {
		in.t.Errorf("the Secret of the webhooks was written by %q", managers)
	}
	if out, err := in.try("kubectl", "get", "namespace", "cert-manager"); err == nil {
		in.t.Errorf("there is a cert-manager: %s", out)
	}
}

func (in *installation) getManagers(namespace, object string) string {
	in.t.Helper()
	return in.kubectl("get", object, "-n", namespace, "--show-managed-fields", "-o", "jsonpath={.metadata.managedFields[*].manager}")
}

const thirdPartyCluster = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: cloudy, namespace: default}
spec:
  clusterNetwork: {pods: {cidrBlocks: [10.244.0.0/16]}}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AWSCluster, name: cloudy}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSCluster
metadata: {name: cloudy, namespace: default}
spec: {region: eu-west-1}
`

func (in *installation) thirdPartyWebhooks() {
	eventually(in.t, short, "the webhooks", func() error { return in.tryApply(thirdPartyCluster) })
	if got := in.get("awscluster/cloudy", "{.spec.identityRef.kind} {.spec.controlPlaneLoadBalancer.loadBalancerType}"); got != "AWSClusterControllerIdentity classic" {
		in.t.Errorf("the AWSCluster is not defaulted: %q", got)
	}
	_, err := in.try("kubectl", "patch", "awscluster", "cloudy", "--type", "merge", "-p", `{"spec":{"region":"eu-west-2"}}`)
	if err == nil || !strings.Contains(err.Error(), "field is immutable") {
		in.t.Errorf("a change of the region is not refused: %v", err)
	}
}

// thirdPartyLacks: without a way to the cloud the cluster stays without infrastructure, and the tree says where.
func (in *installation) thirdPartyLacks() {
	untilContains(in.t, short, "the core reads the provider's object", "AWSCluster", func() string { return in.condition("cluster/cloudy", "InfrastructureReady") })
	eventually(in.t, long, "the tree", func() error {
		tree := in.picture("cloudy")
		for _, text := range []string{"AWSCluster", "InfrastructureReady", "False"} {
			if !strings.Contains(tree, text) {
				return fmt.Errorf("%q is not in:\n%s", text, tree)
			}
		}
		return nil
	})
	in.t.Logf("describe cluster:\n%s", in.picture("cloudy"))
}

// tryApply applies a manifest, and tells whether that worked.
func (in *installation) tryApply(manifest string) error {
	in.t.Helper()
	file := filepath.Join(in.t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		in.t.Fatal(err)
	}
	_, err := in.try("kubectl", "apply", "--server-side", "--force-conflicts", "-f", file)
	return err
}

// getIn is what kubectl prints of an object in a namespace; empty: there is none yet.
func (in *installation) getIn(namespace, object, path string) string {
	out, err := in.try("kubectl", "get", object, "-n", namespace, "-o", "jsonpath="+path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}

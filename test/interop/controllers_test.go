package interop

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// The reference's controllers take the place of ours, one provider at a time, and our other providers create, scale, upgrade and delete
// clusters with them: one with a hosted control plane, and one whose control plane is on Machines.
func TestReferenceControllers(t *testing.T) {
	module := strings.TrimSpace(home{folder: t.TempDir(), more: []string{"HOME=" + os.Getenv("HOME")}}.must(t, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api"))
	for name, p := range map[string]struct {
		set, folder, controller string
		// kinds whose fields the controller writes, in clusters with hosted control planes and with those on Machines.
		hosted, kubeadm string
	}{
		"bootstrap":     {"bootstrap-kubeadm", "bootstrap/kubeadm", "kubeadm", "kubeadmconfigs", "kubeadmconfigs"},
		"core":          {"cluster-api", "core", "capi-machineset", "machines", "machines"},
		"control plane": {"control-plane-kubeadm", "controlplane/kubeadm", "capi-kubeadmcontrolplane", "", "machines"},
	} {
		t.Run(name, func(t *testing.T) {
			m := start(t, p.set)
			m.install(t, filepath.Join(module, p.folder, "config/default"), "sigs.k8s.io/cluster-api/"+p.folder)
			if p.hosted != "" {
				t.Run("hosted", func(t *testing.T) { m.hosted(t, written{p.hosted, p.controller}) })
				t.Run("why", func(t *testing.T) { m.explains(t, name == "core") })
			}
			t.Run("kubeadm", func(t *testing.T) { m.kubeadm(t, written{p.kubeadm, p.controller}) })
		})
	}
}

// install applies CRDs and webhooks of a provider of the reference, and runs its controllers.
func (m *management) install(t *testing.T, kustomization, program string) {
	t.Helper()
	port, health := freePort(t), freePort(t)
	authority := m.certificate(t)
	manifest := m.must(t, m.binary, "kubectl", "kustomize", kustomization)
	m.kubectl(t, "apply", "--server-side", "--force-conflicts", "-f", m.write(t, "reference.yaml", served(t, manifest, port, authority)))
	ctx, stop := context.WithCancel(context.Background())
	log, err := os.Create(filepath.Join(m.folder, "reference.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, tool(t, program), "--kubeconfig", m.kubeconfig, "--leader-elect=false", "--diagnostics-address=127.0.0.1:0",
		"--health-addr=127.0.0.1:"+strconv.Itoa(health), "--webhook-port="+strconv.Itoa(port), "--webhook-cert-dir="+filepath.Join(m.folder, "certificates"))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + m.folder, "POD_NAMESPACE=default", "POD_NAME=reference", "POD_UID=1"}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		stop()
		<-ended
		_ = log.Close()
		if t.Failed() {
			t.Logf("the end of the reference's log:\n%s", tail(log.Name()))
		}
	})
	eventually(t, "the webhooks of the reference", func() bool {
		connection, err := net.DialTimeout("tcp", "127.0.0.1:"+strconv.Itoa(port), time.Second)
		if err == nil {
			_ = connection.Close()
		}
		return err == nil
	})
}

// served are the CRDs and webhooks of a manifest, with their calls going to a port of this machine.
func served(t *testing.T, manifest string, port int, authority []byte) string {
	t.Helper()
	var out strings.Builder
	for d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096); ; {
		o := &unstructured.Unstructured{}
		err := d.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return out.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		switch o.GetKind() {
		case "CustomResourceDefinition":
			if c, found, _ := unstructured.NestedMap(o.Object, "spec", "conversion", "webhook", "clientConfig"); found {
				_ = unstructured.SetNestedMap(o.Object, toPort(c, port, authority), "spec", "conversion", "webhook", "clientConfig")
			}
		case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
			hooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
			for _, h := range hooks {
				hook := h.(map[string]any)
				hook["clientConfig"] = toPort(hook["clientConfig"].(map[string]any), port, authority)
			}
			_ = unstructured.SetNestedSlice(o.Object, hooks, "webhooks")
		default:
			continue
		}
		text, err := json.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n" + string(text) + "\n")
	}
}

func toPort(c map[string]any, port int, authority []byte) map[string]any {
	path, _, _ := unstructured.NestedString(c, "service", "path")
	return map[string]any{"url": fmt.Sprintf("https://127.0.0.1:%d%s", port, path), "caBundle": base64.StdEncoding.EncodeToString(authority)}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// certificate writes one for webhooks at 127.0.0.1, and returns the authority.
func (m *management) certificate(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "interop"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	m.write(t, "certificates/tls.crt", string(public))
	m.write(t, "certificates/tls.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	return public
}

// written says which controller has to have written fields of which kinds.
type written struct{ kinds, controller string }

func (m *management) hasWritten(t *testing.T, w written) {
	t.Helper()
	managers := strings.Fields(m.kubectl(t, "get", w.kinds, "-o", "jsonpath={.items[*].metadata.managedFields[*].manager}", "--show-managed-fields"))
	if !slices.Contains(managers, w.controller) {
		t.Errorf("%s has written nothing: %q", w.controller, managers)
	}
}

// apply applies an example.
func (m *management) apply(t *testing.T, example string) {
	t.Helper()
	manifest, err := os.ReadFile("../../examples/" + example)
	if err != nil {
		t.Fatal(err)
	}
	file := m.write(t, example, string(manifest))
	var last result
	t.Cleanup(func() {
		if last.err != nil {
			t.Logf("applying %s: %v\n%s", example, last.err, last.said)
		}
	})
	eventually(t, "applying "+example, func() bool {
		last = m.run(t.Context(), m.binary, "kubectl", "--kubeconfig", m.kubeconfig, "apply", "-f", file)
		return last.err == nil
	})
}

// deletes deletes the cluster. Nothing is left of it.
func (m *management) deletes(t *testing.T, cluster string) {
	t.Helper()
	m.kubectl(t, "delete", "cluster", cluster, "--wait=false")
	eventually(t, "deleting the cluster", func() bool {
		return strings.TrimSpace(m.kubectl(t, "get",
			"clusters,machines,kubeadmconfigs,kubeadmcontrolplanes,localmachines,localclusters,hostedcontrolplanes", "-o", "name")) == ""
	})
}

// hosted creates a simulated cluster with a hosted control plane, scales it and deletes it.
func (m *management) hosted(t *testing.T, w written) {
	m.apply(t, "fleet.yaml")
	m.nodes(t, "1")
	m.hasWritten(t, w)
	m.kubectl(t, "scale", "machinedeployment", "fleet-workers", "--replicas", "3")
	m.nodes(t, "3")
	m.deletes(t, "fleet")
}

// kubeadm creates a simulated cluster whose control plane is on three Machines, scales its workers, upgrades it, scales the control
// plane to one and deletes it.
func (m *management) kubeadm(t *testing.T, w written) {
	m.apply(t, "fleet-kubeadm.yaml")
	m.nodes(t, "1")
	m.controlPlane(t, "3", "v1.35.4")
	m.hasWritten(t, w)
	m.kubectl(t, "scale", "machinedeployment", "spire-workers", "--replicas", "2")
	m.nodes(t, "2")
	m.kubectl(t, "patch", "kubeadmcontrolplane", "spire", "--type", "merge", "-p", `{"spec":{"version":"v1.36.3"}}`)
	m.controlPlane(t, "3", "v1.36.3")
	m.kubectl(t, "scale", "kubeadmcontrolplane", "spire", "--replicas", "1")
	m.controlPlane(t, "1", "v1.36.3")
	m.deletes(t, "spire")
}

// controlPlane waits until the Machines of the control plane are so many, of this version, and everything about them is as it should be.
func (m *management) controlPlane(t *testing.T, n, version string) {
	t.Helper()
	var status string
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the control plane at last: %s", status)
		}
	})
	want := fmt.Sprintf("%[1]s %[1]s %[1]s %[1]s %[2]s True True True", n, version)
	within(t, 3*patience, n+" Machines of the control plane with "+version, func() bool { // each replaced after the other
		status = m.kubectl(t, "get", "kubeadmcontrolplane", "spire", "-o", `jsonpath={.status.replicas} {.status.readyReplicas} {.status.upToDateReplicas} `+
			`{.status.availableReplicas} {.status.version} {.status.conditions[?(@.type=="Available")].status} `+
			`{.status.conditions[?(@.type=="EtcdClusterHealthy")].status} {.status.conditions[?(@.type=="ControlPlaneComponentsHealthy")].status}`)
		return status == want
	})
}

// nodes waits until the workers are so many, and the cluster is available.
func (m *management) nodes(t *testing.T, n string) {
	t.Helper()
	eventually(t, n+" nodes", func() bool {
		out := m.kubectl(t, "get", "machinedeployment,cluster", "-o",
			`jsonpath={.items[0].status.availableReplicas}/{.items[0].status.replicas} {.items[1].status.conditions[?(@.type=="Available")].status}`)
		return out == n+"/"+n+" True"
	})
}

package faults

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/hooktest"
)

func intOrString(v int32) intstr.IntOrString { return intstr.FromInt32(v) }

func quantity(text string) resource.Quantity { return resource.MustParse(text) }

// foreignKinds returns the CRDs of a provider without controllers, and the rights for them.
func foreignKinds(t *testing.T) (out []*unstructured.Unstructured) {
	const labelled = `{"cluster.x-k8s.io/v1beta2": v1}`
	for _, k := range []struct{ group, kind, labels string }{
		{"infrastructure.foo.dev", "FooCluster", labelled}, {"infrastructure.foo.dev", "FooMachine", labelled}, {"infrastructure.foo.dev", "FooMachinePool", labelled},
		{"controlplane.foo.dev", "FooControlPlane", labelled}, {"infrastructure.foo.dev", "GoneCluster", labelled},
		{"infrastructure.foo.dev", "BarCluster", "{}"}, {"infrastructure.baz.dev", "BazCluster", labelled},
	} {
		lower := strings.ToLower(k.kind)
		out = append(out, decode(t, fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %ss.%s, labels: %s}, spec: {
  group: %s, scope: Namespaced, names: {kind: %s, listKind: %sList, plural: %ss, singular: %s},
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`,
			lower, k.group, k.labels, k.group, k.kind, k.kind, lower, lower))...)
	}
	return append(out, decode(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole,
  metadata: {name: foo-provider, labels: {"cluster.x-k8s.io/aggregate-to-manager": "true"}},
  rules: [{apiGroups: [infrastructure.foo.dev, controlplane.foo.dev], resources: ["*"], verbs: [get, list, watch, create, update, patch, delete]}]}`)...)
}

// external creates a Cluster whose infrastructure and control plane are those of a foreign provider, and the kubeconfig
// Secret of its API server.
func (n *namespace) external(kubeconfig string) {
	n.Helper()
	n.apply(`{apiVersion: infrastructure.foo.dev/v1, kind: FooCluster, metadata: {name: ext}, spec: {controlPlaneEndpoint: {host: 127.0.0.1, port: 6443}},
  status: {initialization: {provisioned: true}}}`)
	n.apply(fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: ext-kubeconfig, labels: {cluster.x-k8s.io/cluster-name: ext}}, type: cluster.x-k8s.io/secret, data: {value: %s}}`, encoded([]byte(kubeconfig))))
	n.foreignCluster("FooCluster")
}

// foreignCluster creates a Cluster with an infrastructure of a foreign kind, and its control plane.
func (n *namespace) foreignCluster(kind string) {
	n.Helper()
	group, _, _ := strings.Cut(apiVersions()[kind], "/")
	n.apply(fmt.Sprintf(`{apiVersion: controlplane.foo.dev/v1, kind: FooControlPlane, metadata: {name: ext}, spec: {version: v1.36.3},
  status: {version: v1.36.3, externalManagedControlPlane: true, initialization: {controlPlaneInitialized: true}}}
---
{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: ext}, spec: {
  infrastructureRef: {apiGroup: %s, kind: %s, name: ext}, controlPlaneRef: {apiGroup: controlplane.foo.dev, kind: FooControlPlane, name: ext}}}`, group, kind))
}

func encoded(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

// api serves a workload API until the test ends, and returns the kubeconfig for it.
func (n *namespace) api(user string, handler http.HandlerFunc) string {
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	n.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}],
  clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}], users: [{name: u, user: %s}]}`, server.URL, encoded(ca), user)
}

// expiredUser returns a user of a kubeconfig with a client certificate that has expired.
func (n *namespace) expiredUser() string {
	cert, key := hooktest.NewAuthority(n).IssuePEM(hooktest.Certificate{Name: "admin", Client: true, Expired: true})
	return fmt.Sprintf("{client-certificate-data: %s, client-key-data: %s}", encoded(cert), encoded(key))
}

// expiredAuthority creates the Secret of an authority that expired on 2024-02-01.
func (n *namespace) expiredAuthority(name string) {
	n.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	n.must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		NotBefore: time.Date(2023, 2, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2024, 2, 1, 0, 0, 0, 0, time.UTC),
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	n.must(err)
	private, err := x509.MarshalECPrivateKey(key)
	n.must(err)
	n.apply(fmt.Sprintf(`{apiVersion: v1, kind: Secret, type: cluster.x-k8s.io/secret, metadata: {name: %s, labels: {cluster.x-k8s.io/cluster-name: fleet}}, data: {tls.crt: %s, tls.key: %s}}`,
		name, encoded(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})), encoded(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}))))
}

// extension serves a Runtime Extension for this namespace with one handler, and waits until it is registered.
func (n *namespace) extension(hook, handler string, serve http.HandlerFunc) *hooktest.Extension {
	n.Helper()
	x := hooktest.Start(n, hooktest.Options{})
	x.Handle(hooktest.Handler(handler, hook), serve)
	n.register(x.URL, x.Authority.PEM)
	n.await("ExtensionConfig", n.extensionName(), "Discovered")
	return x
}

func (n *namespace) extensionName() string { return "ext-" + n.name }

// register creates the ExtensionConfig of an extension for this namespace, which is deleted when the test ends.
func (n *namespace) register(url string, ca []byte) {
	n.Helper()
	o := decode(n, fmt.Sprintf(`{apiVersion: runtime.cluster.x-k8s.io/v1beta2, kind: ExtensionConfig, metadata: {name: %s}, spec: {
  clientConfig: {url: %q, caBundle: %s}, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}}}`, n.extensionName(), url, encoded(ca), n.name))[0]
	n.Cleanup(func() {
		if err := client.IgnoreNotFound(n.Delete(context.Background(), o)); err != nil {
			n.Errorf("delete ExtensionConfig %s: %v", o.GetName(), err)
		}
	})
	n.create(n, o)
}

package providerrelease

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
)

// Release describes a release of a provider.
type Release struct {
	// Label identifies the provider, for example infrastructure-acme.
	Label   string
	Version string
	// Contract is the contract version, by default v1beta2.
	Contract string
	// Stored is the storage version of its CRD, by default v1. Served are further versions that the CRD serves.
	Stored string
	Served []string
	// More contains additional YAML documents for its components, in which NAME stands for [Release.Name].
	More string
}

// Name is the prefix of all object names: the label without its type, or the whole label if several providers have the
// same name.
func (r Release) Name() string {
	t, name := split(r.Label)
	if name == "kubeadm" || t == provider.Core {
		return strings.ReplaceAll(r.Label, "-", "")
	}
	return name
}

const components = `apiVersion: v1
kind: Namespace
metadata: {name: NAME-system}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: NAMEthings.infrastructure.cluster.x-k8s.io
  annotations: {cert-manager.io/inject-ca-from: NAME-system/serving}
spec:
  group: infrastructure.cluster.x-k8s.io
  names: {kind: NAMEthing, plural: NAMEthings, singular: NAMEthing, listKind: NAMEthingList}
  scope: Namespaced
  versions: CRDVERSIONS
---
apiVersion: infrastructure.cluster.x-k8s.io/STORED
kind: NAMEthing
metadata: {name: default, namespace: NAME-system}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: selfsigned, namespace: NAME-system}
spec: {selfSigned: {}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: serving, namespace: NAME-system}
spec:
  dnsNames: [NAME-webhook.NAME-system.svc]
  issuerRef: {kind: Issuer, name: selfsigned}
  secretName: NAME-cert
---
apiVersion: v1
kind: Secret
metadata: {name: NAME-credentials, namespace: NAME-system}
stringData: {token: "${NAME_TOKEN:=none}"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME-manager, namespace: NAME-system}
spec:
  replicas: 1
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: manager, image: registry.example/NAME:VERSION}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: NAME-validation
  annotations: {cert-manager.io/inject-ca-from: NAME-system/serving}
webhooks:
- name: a.NAME.example
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  clientConfig: {service: {name: NAME-webhook, namespace: NAME-system, path: /validate}}
  rules: [{apiGroups: [NAME.example], apiVersions: [v1], operations: [CREATE], resources: [nothings]}]
`

// clusterCRD is the CRD from which the contract of a core provider is read.
const clusterCRD = `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clusters.cluster.x-k8s.io, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: cluster.x-k8s.io
  names: {kind: Cluster, plural: clusters, singular: cluster, listKind: ClusterList}
  scope: Namespaced
  versions: [{name: v1beta2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

func (r Release) more() string {
	if t, _ := split(r.Label); t == provider.Core {
		return r.More + clusterCRD
	}
	return r.More
}

func (r Release) stored() string {
	if r.Stored == "" {
		return "v1"
	}
	return r.Stored
}

// crdVersions returns the version list of the CRD.
func (r Release) crdVersions() string {
	stored, served := r.stored(), r.Served
	if !slices.Contains(served, stored) {
		served = append([]string{stored}, served...)
	}
	var out []string
	for _, v := range served {
		out = append(out, fmt.Sprintf("{name: %s, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}", v, v == stored))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// Write writes the releases into a folder and returns a clusterctl configuration with their providers. The repository
// URL points to the latest version. Tests of `slipway init`, `upgrade` and `delete` install them; file names,
// metadata.yaml and the configuration have clusterctl's format.
func Write(t testing.TB, folder string, releases ...Release) string {
	t.Helper()
	config := "providers:\n"
	seen := map[string]bool{}
	for _, r := range releases {
		typ, name := split(r.Label)
		contract := r.Contract
		if contract == "" {
			contract = "v1beta2"
		}
		major, minor, _ := strings.Cut(strings.TrimPrefix(r.Version, "v"), ".")
		minor, _, _ = strings.Cut(minor, ".")
		text := strings.NewReplacer("NAME_TOKEN", strings.ToUpper(r.Name())+"_TOKEN", "NAME", r.Name(), "CRDVERSIONS", r.crdVersions(), "STORED", r.stored(), "VERSION", r.Version).Replace(components + r.more())
		at := filepath.Join(folder, r.Label, r.Version)
		write(t, filepath.Join(at, typ.ComponentsFile()), text)
		write(t, filepath.Join(at, "metadata.yaml"), fmt.Sprintf(
			"apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries: [{major: %s, minor: %s, contract: %s}]\n", major, minor, contract))
		if !seen[r.Label] {
			config += fmt.Sprintf("- {name: %s, type: %s, url: %s}\n", name, typ, filepath.Join(folder, r.Label, "latest", typ.ComponentsFile()))
		}
		seen[r.Label] = true
	}
	return config
}

func split(label string) (provider.Type, string) {
	for _, t := range provider.Types() {
		if name, ok := strings.CutPrefix(label, t.Flag()+"-"); ok && t != provider.Core {
			return t, name
		}
	}
	return provider.Core, label
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

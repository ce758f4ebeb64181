package certificates

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The names with cert-manager.io are cert-manager's API, which manifests of providers use.
const (
	group = "cert-manager.io"
	// ownLabel marks Slipway's CRDs and distinguishes them from cert-manager's. Existing CRDs have it, so it must not
	// change.
	ownLabel = "clusterctl.slipway.dev/cert-manager"
	// ownValue is the value of ownLabel.
	ownValue = "builtin"
	// certificatesCRD is the CRD that determines the [Provisioner].
	certificatesCRD = "certificates.cert-manager.io"
	// injectFrom is the annotation of an object with the namespace/name of the Certificate whose CA is injected into
	// it.
	injectFrom = "cert-manager.io/inject-ca-from"
	// certificateName is the annotation of a Secret with the name of the Certificate it was issued for.
	certificateName = "cert-manager.io/certificate-name"
	// requestHash is the annotation of a Secret with the hash of the request it was issued for.
	requestHash = "clusterctl.slipway.dev/request-hash"
	// coreCertManager is the value of [provider.CoreLabel] on the objects of cert-manager.
	coreCertManager = "cert-manager"
	// clusterNamespace is the namespace of the Secrets of ClusterIssuers.
	clusterNamespace = "cert-manager"
)

// kindOf returns a kind of cert-manager in the only version that Slipway reads. All reads and writes of such objects
// use it.
func kindOf(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
}

// certManagerCertificate is the part of a Certificate that Slipway reads. The JSON names of the types in this file are
// cert-manager's. reconcile.go decodes each Certificate to it.
type certManagerCertificate struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              request `json:"spec"`
}

// request is the specification of a Certificate. [Reconcile] reads it from the Certificate, and issues a certificate
// for it. Secrets contain its hash (request.hash), so another JSON form would issue all certificates again.
type request struct {
	SecretName  string           `json:"secretName"`
	CommonName  string           `json:"commonName,omitempty"`
	DNSNames    []string         `json:"dnsNames,omitempty"`
	IPAddresses []string         `json:"ipAddresses,omitempty"`
	URIs        []string         `json:"uris,omitempty"`
	IsCA        bool             `json:"isCA,omitempty"`
	Duration    *metav1.Duration `json:"duration,omitempty"`
	RenewBefore *metav1.Duration `json:"renewBefore,omitempty"`
	Usages      []string         `json:"usages,omitempty"`
	IssuerRef   issuerRef        `json:"issuerRef"`
	Subject     *subject         `json:"subject,omitempty"`
	PrivateKey  *privateKey      `json:"privateKey,omitempty"`
	Template    *secretTemplate  `json:"secretTemplate,omitempty"`
}

// issuerRef names an Issuer or a ClusterIssuer.
type issuerRef struct {
	Name  string `json:"name"`
	Kind  string `json:"kind,omitempty"`
	Group string `json:"group,omitempty"`
}

// subject is the subject of a certificate.
type subject struct {
	Organizations []string `json:"organizations,omitempty"`
}

// privateKey specifies the private key to generate.
type privateKey struct {
	Algorithm string `json:"algorithm,omitempty"`
	Size      int    `json:"size,omitempty"`
	Encoding  string `json:"encoding,omitempty"`
}

// secretTemplate has additional metadata for the Secret.
type secretTemplate struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// issuer is the part of an Issuer or ClusterIssuer that Slipway reads. reconciler.authority decodes it.
type issuer struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		SelfSigned *struct{} `json:"selfSigned,omitempty"`
		CA         *struct {
			SecretName string `json:"secretName"`
		} `json:"ca,omitempty"`
	} `json:"spec"`
}

// decode converts an object to a Go type. reconcile.go and [PlanUpgrade] call it.
func decode(o *unstructured.Unstructured, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into)
}

// ownCRDs returns Slipway's CRDs for the kinds of cert-manager that providers use. They preserve unknown fields.
// builtinSteps (mode.go) applies them.
func ownCRDs() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{
		crd("Certificate", "certificates", "Namespaced"), crd("Issuer", "issuers", "Namespaced"), crd("ClusterIssuer", "clusterissuers", "Cluster"),
	}
}

// ownDescription is the description in the schema of Slipway's CRDs. It shows whether another manifest was applied over
// a CRD, because the labels remain in this case. Existing CRDs have it, so it must not change.
const ownDescription = "Satisfied by Slipway in the place of cert-manager."

func crd(kind, plural, scope string) *unstructured.Unstructured {
	open := func(description string) map[string]any {
		return map[string]any{"type": "object", "description": description, "x-kubernetes-preserve-unknown-fields": true}
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": group, "scope": scope,
		"names": map[string]any{"kind": kind, "listKind": kind + "List", "plural": plural, "singular": plural[:len(plural)-1]},
		"versions": []any{map[string]any{
			"name": "v1", "served": true, "storage": true,
			"subresources": map[string]any{"status": map[string]any{}},
			"additionalPrinterColumns": []any{
				map[string]any{"name": "Ready", "type": "string", "jsonPath": `.status.conditions[?(@.type=="Ready")].status`},
				map[string]any{"name": "Status", "type": "string", "jsonPath": `.status.conditions[?(@.type=="Ready")].message`},
			},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "description": ownDescription, "required": []any{"spec"},
				"properties": map[string]any{
					"apiVersion": map[string]any{"type": "string"}, "kind": map[string]any{"type": "string"}, "metadata": map[string]any{"type": "object"},
					"spec": open("Desired state of the object."), "status": open("Observed state of the object."),
				},
			}},
		}},
	}}}
	o.SetAPIVersion("apiextensions.k8s.io/v1")
	o.SetKind("CustomResourceDefinition")
	o.SetName(plural + "." + group)
	// Not [provider.CoreLabel]: clusterctl would treat the CRD as part of its own cert-manager, and upgrade it.
	o.SetLabels(map[string]string{ownLabel: ownValue})
	return o
}

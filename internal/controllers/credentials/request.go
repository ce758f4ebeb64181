package credentials

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	certificatesv1 "k8s.io/api/certificates/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// signerDomain is the domain of the signers. Each Cluster has its own signer, see [SignerOf].
	signerDomain = "clusters.slipway.dev"
	// verb is the verb on a Cluster that allows a user to request credentials for it. Administrators grant it in Roles.
	verb = "connect"
	// RoleAnnotation on a request is the ClusterRole in the workload cluster that the certificate is bound to.
	// Without it the certificate has the permissions that the workload cluster grants to its user and groups.
	RoleAnnotation = "slipway.dev/role"
	// ClusterAnnotation on a request contains the connection data of the API server, as a kubeconfig cluster in
	// JSON. The controller sets it, and package operate/kubeconfig reads it.
	ClusterAnnotation = "slipway.dev/cluster"

	// GroupPrefix is the prefix of the group that identifies a single certificate, BindingPrefix the prefix of the
	// name of its ClusterRoleBinding. Both are in existing certificates and bindings of workload clusters.
	GroupPrefix   = "slipway:personal:"
	BindingPrefix = "slipway-personal-"

	// MaxValidity is the maximum validity of a certificate, defaultValidity the validity if the request specifies none.
	MaxValidity     = 7 * 24 * time.Hour
	defaultValidity = 8 * time.Hour

	maxGroups = 32
	maxName   = 64 // of a common name, RFC 5280
)

// reserved are prefixes of users and groups that Kubernetes, kubeadm or Slipway use. A certificate with one of them
// would have permissions that no administrator has granted to its user.
var reserved = [...]string{"system:", "kubeadm:", GroupPrefix}

// SignerOf returns the signer of a Cluster. `slipway get kubeconfig --user` requests certificates from it. The policy
// in config/rbac/credentials.yaml parses this form, so both change together.
func SignerOf(cluster client.ObjectKey) string {
	return signerDomain + "/" + cluster.Namespace + "." + cluster.Name
}

// clusterOf returns the Cluster of a signer. Namespaces contain no dot, so the first dot ends the namespace. The
// controller and decide call it.
func clusterOf(signer string) (client.ObjectKey, bool) {
	path, ours := strings.CutPrefix(signer, signerDomain+"/")
	namespace, name, ok := strings.Cut(path, ".")
	return client.ObjectKey{Namespace: namespace, Name: name}, ours && ok && namespace != "" && name != ""
}

// requestContent is the content of a request.
type requestContent struct {
	user   string
	groups []string
	role   string
	valid  time.Duration
	public any
}

// read returns the content of a CertificateSigningRequest, or the rule that it violates. [decide] calls it for new
// requests, and again before a certificate is issued. Any user can create requests, so every field is checked here.
func read(r *certificatesv1.CertificateSigningRequest) (w requestContent, broken string) {
	block, rest := pem.Decode(r.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(strings.TrimSpace(string(rest))) > 0 {
		return w, "spec.request is not one certificate request in PEM"
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || parsed.CheckSignature() != nil {
		return w, "spec.request is not a certificate request that is signed with its own key"
	}
	w = requestContent{user: parsed.Subject.CommonName, groups: parsed.Subject.Organization, role: r.Annotations[RoleAnnotation], valid: defaultValidity, public: parsed.PublicKey}
	if seconds := r.Spec.ExpirationSeconds; seconds != nil {
		w.valid = min(time.Duration(*seconds)*time.Second, MaxValidity)
	}
	if len(parsed.DNSNames)+len(parsed.EmailAddresses)+len(parsed.IPAddresses)+len(parsed.URIs) > 0 {
		return w, "the certificate is one of a client: leave out DNS names, addresses, e-mail addresses and URIs"
	}
	if broken := usages(r.Spec.Usages); broken != "" {
		return w, broken
	}
	return w, names(w)
}

func usages(of []certificatesv1.KeyUsage) string {
	allowed := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth}
	for _, u := range of {
		if !slices.Contains(allowed, u) {
			return fmt.Sprintf("spec.usages has %q: the certificate is one of a client, with the usage %q", u, certificatesv1.UsageClientAuth)
		}
	}
	if !slices.Contains(of, certificatesv1.UsageClientAuth) {
		return fmt.Sprintf("spec.usages lacks %q", certificatesv1.UsageClientAuth)
	}
	return ""
}

// names returns what is wrong with the user or the groups, or an empty string.
func names(w requestContent) string {
	if len(w.groups) > maxGroups {
		return fmt.Sprintf("it has %d groups, and may have %d", len(w.groups), maxGroups)
	}
	for i, name := range append([]string{w.user}, w.groups...) {
		what := "group"
		if i == 0 {
			what = "user"
		}
		if name == "" || utf8.RuneCountInString(name) > maxName || strings.TrimSpace(name) != name {
			return fmt.Sprintf("%q cannot be the name of a %s: it has 1 to %d characters, and no spaces around them", name, what, maxName)
		}
		for _, prefix := range reserved {
			if strings.HasPrefix(name, prefix) {
				return fmt.Sprintf("%s %q is reserved: names that start with %q are not issued", what, name, prefix)
			}
		}
	}
	return ""
}

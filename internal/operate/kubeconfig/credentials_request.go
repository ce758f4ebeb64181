package kubeconfig

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/controllers/credentials"
	"github.com/slipwayhq/slipway/internal/fault"
)

// ReasonNotHandled is the reason when no manager has decided about a request: none of the management cluster issues
// credentials, or reconciles the namespace.
const ReasonNotHandled = "CredentialsNotHandled"

// RequestFrom requests credentials for a Cluster from the manager of its management cluster, with the permissions of
// the client's user, for `slipway get kubeconfig --user`. The credentials controller decides about the request. It does
// not read the administrator's kubeconfig.
func RequestFrom(ctx context.Context, management kubernetes.Interface, cluster client.ObjectKey, r CredentialsRequest) (Credentials, error) {
	if err := r.check(); err != nil {
		return Credentials{}, err
	}
	id := make([]byte, 8)
	if _, err := rand.Read(id); err != nil {
		return Credentials{}, err
	}
	key, request, private, err := newRequest(r.User, r.Groups)
	if err != nil {
		return Credentials{}, err
	}
	seconds := int32(r.Validity / time.Second)
	requests := management.CertificatesV1().CertificateSigningRequests()
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: prefix + hex.EncodeToString(id), Annotations: map[string]string{credentials.RoleAnnotation: r.Role}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: request, SignerName: credentials.SignerOf(cluster), ExpirationSeconds: &seconds,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
	if csr, err = requests.Create(ctx, csr, metav1.CreateOptions{}); err != nil {
		return Credentials{}, fmt.Errorf("creating a CertificateSigningRequest for Cluster %s: %w", cluster, err)
	}
	if csr, err = awaitSigned(ctx, requests.Get, csr.Name); err != nil {
		return Credentials{}, err
	}
	groups := r.Groups
	out := Credentials{Key: key, Certificate: csr.Status.Certificate}
	if r.Role != "" {
		out.Binding = credentials.BindingPrefix + string(csr.UID)
		groups = append([]string{credentials.GroupPrefix + string(csr.UID)}, slices.Clone(groups)...)
	}
	issued, err := checkIssued(csr.Status.Certificate, private, r.User, groups)
	if err != nil {
		return Credentials{}, err
	}
	out.Expires = issued.NotAfter
	out.Server, err = serverOf(csr)
	return out, err
}

// awaitSigned waits until a request is signed, or rejected.
func awaitSigned(
	ctx context.Context, get func(context.Context, string, metav1.GetOptions) (*certificatesv1.CertificateSigningRequest, error), name string,
) (csr *certificatesv1.CertificateSigningRequest, err error) {
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, signedWithin, true, func(ctx context.Context) (bool, error) {
		if csr, err = get(ctx, name, metav1.GetOptions{}); err != nil {
			return false, err
		}
		for _, c := range csr.Status.Conditions {
			if c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed {
				return false, fault.New(fault.Invalid, ReasonNotSigned, "the manager does not issue the credentials: %s", c.Message)
			}
		}
		return len(csr.Status.Certificate) > 0, nil
	})
	switch {
	case err == nil:
		return csr, nil
	case !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
		return nil, fmt.Errorf("waiting for CertificateSigningRequest %s to be signed: %w", name, err)
	case csr == nil || len(csr.Status.Conditions) == 0:
		return nil, fault.New(fault.Transient, ReasonNotHandled, "no manager has decided about CertificateSigningRequest %s within %s: see that one runs which issues credentials, and try again", name, signedWithin)
	}
	return nil, fault.New(fault.Transient, ReasonNotSigned,
		"CertificateSigningRequest %s is approved and not signed within %s: the manager waits until the workload cluster can be reached; `slipway describe cluster` shows how far it is", name, signedWithin)
}

// serverOf returns the connection to the API server that the manager published in the request.
func serverOf(csr *certificatesv1.CertificateSigningRequest) (*rest.Config, error) {
	var c clientcmdv1.Cluster
	text := csr.Annotations[credentials.ClusterAnnotation]
	if err := json.Unmarshal([]byte(text), &c); err != nil || !strings.HasPrefix(c.Server, "https://") {
		return nil, fault.New(fault.Invalid, ReasonNotSigned, "annotation %s of CertificateSigningRequest %s does not name the API server: %q", credentials.ClusterAnnotation, csr.Name, text)
	}
	return &rest.Config{Host: c.Server, TLSClientConfig: rest.TLSClientConfig{ServerName: c.TLSServerName, CAData: c.CertificateAuthorityData}}, nil
}

package kubeconfig

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/slipwayhq/slipway/internal/fault"
)

// signedWithin is the timeout for the cluster to sign.
const signedWithin = 30 * time.Second

// subject has the name of the request and the groups in a certificate. [Issue] and [IssueManagement] fill it in.
type subject struct {
	name   string
	groups []string
}

// certificate generates a key and requests a certificate from the cluster, for [Issue] and [IssueManagement].
func certificate(ctx context.Context, c kubernetes.Interface, r CredentialsRequest, s subject) (key, cert []byte, issued *x509.Certificate, err error) {
	key, request, private, err := newRequest(r.User, s.groups)
	if err != nil {
		return nil, nil, nil, err
	}
	if cert, err = sign(ctx, c, r, s.name, request); err != nil {
		return nil, nil, nil, err
	}
	if issued, err = checkIssued(cert, private, r.User, s.groups); err != nil {
		return nil, nil, nil, err
	}
	return key, cert, issued, nil
}

// newRequest generates a key and a certificate signing request, both PEM-encoded.
func newRequest(user string, groups []string) (key, request []byte, private *ecdsa.PrivateKey, err error) {
	if private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, nil, nil, err
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, nil, nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: groups}}, private)
	if err != nil {
		return nil, nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), private, nil
}

// checkIssued checks that a certificate is for the requested key, user and groups. [Issue] creates the
// ClusterRoleBinding after this check, so that a wrong certificate gets no permissions.
func checkIssued(cert []byte, private *ecdsa.PrivateKey, user string, groups []string) (*x509.Certificate, error) {
	block, _ := pem.Decode(cert)
	if block == nil {
		return nil, fault.New(fault.Invalid, ReasonNotSigned, "the signer did not return a certificate")
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fault.New(fault.Invalid, ReasonNotSigned, "the signer did not return a certificate").From(err)
	}
	have, want := slices.Sorted(slices.Values(parsed.Subject.Organization)), slices.Sorted(slices.Values(groups))
	if !private.PublicKey.Equal(parsed.PublicKey) || parsed.Subject.CommonName != user || !slices.Equal(have, want) {
		return nil, fault.New(fault.Invalid, ReasonNotSigned, "the certificate has another name, group or key than requested; no permissions were granted")
	}
	return parsed, nil
}

// sign creates and approves a CertificateSigningRequest, returns the certificate, and deletes the request.
func sign(ctx context.Context, c kubernetes.Interface, r CredentialsRequest, name string, pemRequest []byte) ([]byte, error) {
	seconds := int32(r.Validity / time.Second)
	requests := c.CertificatesV1().CertificateSigningRequests()
	csr, err := requests.Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pemRequest, SignerName: certificatesv1.KubeAPIServerClientSignerName, ExpirationSeconds: &seconds,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating CertificateSigningRequest %s: %w", name, err)
	}
	defer func() { _ = requests.Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{}) }() // otherwise the cluster deletes it after a day
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "PersonalCredentials", Message: "Requested by slipway get kubeconfig --user",
	})
	if _, err := requests.UpdateApproval(ctx, name, csr, metav1.UpdateOptions{}); err != nil {
		return nil, fmt.Errorf("approving CertificateSigningRequest %s: %w", name, err)
	}
	var refused string
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, signedWithin, true, func(ctx context.Context) (bool, error) {
		if csr, err = requests.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return false, err
		}
		for _, cond := range csr.Status.Conditions {
			if cond.Type == certificatesv1.CertificateFailed || cond.Type == certificatesv1.CertificateDenied {
				refused = cond.Message
				return true, nil
			}
		}
		return len(csr.Status.Certificate) > 0, nil
	})
	switch {
	case refused != "":
		return nil, fault.New(fault.Invalid, ReasonNotSigned, "the workload cluster does not sign the certificate: %s", refused)
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return nil, fault.New(fault.Transient, ReasonNotSigned,
			"the workload cluster has not signed the certificate in %s: its kube-controller-manager does that for the signer %s; see that it runs, and try again",
			signedWithin, certificatesv1.KubeAPIServerClientSignerName)
	}
	if err != nil {
		return nil, fmt.Errorf("waiting for CertificateSigningRequest %s to be signed: %w", name, err)
	}
	return csr.Status.Certificate, nil
}

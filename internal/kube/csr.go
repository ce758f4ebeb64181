package kube

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Approve approves a CertificateSigningRequest as it was read. If it was changed or deleted in the meantime, Approve
// does nothing; the watch delivers the change. The controllers that sign client certificates of users and approve
// serving certificates of kubelets call the methods in this file.
func (w *Writer) Approve(ctx context.Context, request *certificatesv1.CertificateSigningRequest, reason, message string) error {
	return w.conclude(ctx, request, "approval", withCondition(certificatesv1.CertificateApproved, reason, message))
}

// Deny denies a CertificateSigningRequest under the same conditions as Approve. The controller credentials calls it.
func (w *Writer) Deny(ctx context.Context, request *certificatesv1.CertificateSigningRequest, reason, message string) error {
	return w.conclude(ctx, request, "approval", withCondition(certificatesv1.CertificateDenied, reason, message))
}

// FailRequest records that a CertificateSigningRequest was approved but cannot be signed. The controller credentials
// calls it.
func (w *Writer) FailRequest(ctx context.Context, request *certificatesv1.CertificateSigningRequest, reason, message string) error {
	return w.conclude(ctx, request, "status", withCondition(certificatesv1.CertificateFailed, reason, message))
}

// Sign sets the certificate of a CertificateSigningRequest, in PEM. The controller credentials calls it.
func (w *Writer) Sign(ctx context.Context, request *certificatesv1.CertificateSigningRequest, certificate []byte) error {
	return w.conclude(ctx, request, "status", func(r *certificatesv1.CertificateSigningRequest) { r.Status.Certificate = certificate })
}

func withCondition(of certificatesv1.RequestConditionType, reason, message string) func(*certificatesv1.CertificateSigningRequest) {
	return func(r *certificatesv1.CertificateSigningRequest) {
		r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: of, Status: corev1.ConditionTrue, Reason: reason, Message: message,
		})
	}
}

// conclude updates a subresource of a CertificateSigningRequest, because the API server accepts these changes only
// through subresources. It ignores conflicts and missing objects.
func (w *Writer) conclude(ctx context.Context, request *certificatesv1.CertificateSigningRequest, subresource string, change func(*certificatesv1.CertificateSigningRequest)) error {
	changed := request.DeepCopy()
	change(changed)
	err := w.client.SubResource(subresource).Update(ctx, changed, client.FieldOwner(w.owner))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("updating the %s of CertificateSigningRequest %s: %w", subresource, request.Name, err)
	}
	w.record(changed)
	return nil
}

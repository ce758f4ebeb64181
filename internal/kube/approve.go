package kube

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Approve approves a request for a certificate as it was read. One that was changed or deleted meanwhile is left: its watch tells.
func (w *Writer) Approve(ctx context.Context, request *certificatesv1.CertificateSigningRequest, reason, message string) error {
	approved := request.DeepCopy()
	approved.Status.Conditions = append(approved.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: reason, Message: message,
	})
	err := w.client.SubResource("approval").Update(ctx, approved, client.FieldOwner(w.owner))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("approving CertificateSigningRequest %s: %w", request.Name, err)
	}
	w.record(approved)
	return nil
}

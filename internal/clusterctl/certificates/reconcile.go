package certificates

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
)

// Reasons of faults.
const (
	// reasonRequest is the reason when a Certificate requests something that cannot be issued; Invalid.
	reasonRequest = "InvalidCertificate"
	// reasonIssuer is the reason when an issuer cannot issue; Invalid.
	reasonIssuer = "IssuerNotReady"
)

// writer is the suffix of the field manager's name.
const writer = "certificates"

// Reconcile issues every Certificate that is due, and injects CA bundles into the annotated objects. A [Controller]
// calls it, and an installation of providers. It does nothing if the cert-manager CRDs are not Slipway's. The error of
// one Certificate is written to its status and returned, and does not prevent the reconciliation of the others.
func Reconcile(ctx context.Context, c client.Client, now time.Time) error {
	who, err := getProvisioner(ctx, c)
	if err != nil || who != Slipway {
		return err
	}
	r := reconciler{client: c, writer: kube.NewWriter(c, writer), now: now, authorities: map[client.ObjectKey][]byte{}}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kindOf("CertificateList"))
	if err := c.List(ctx, list); err != nil {
		return fmt.Errorf("listing Certificates: %w", err)
	}
	var problems []error
	// The second iteration issues Certificates whose CA was issued in the first. A longer chain of CAs may need further
	// reconciliations, which the [Controller] starts because it watches the Secrets.
	for range 2 {
		problems = nil
		for i := range list.Items {
			problems = append(problems, r.certificate(ctx, &list.Items[i]))
		}
		if errors.Join(problems...) == nil {
			break
		}
	}
	return errors.Join(errors.Join(problems...), r.inject(ctx))
}

// reconciler reconciles all Certificates once.
type reconciler struct {
	client client.Client
	writer *kube.Writer
	now    time.Time
	// authorities are the PEM-encoded CA certificates by Certificate.
	authorities map[client.ObjectKey][]byte
}

// certificate issues a Certificate if it is due, and updates its status.
func (r reconciler) certificate(ctx context.Context, o *unstructured.Unstructured) error {
	err := r.issueIfDue(ctx, o)
	message, status := "Certificate is up to date and has not expired", metav1.ConditionTrue
	if err != nil {
		message, status = fault.UserMessage(err), metav1.ConditionFalse
		err = fmt.Errorf("certificate %s: %w", client.ObjectKeyFromObject(o), err)
	}
	if fault.KindOf(err) != fault.Invalid && err != nil {
		return err // it is retried; the status is left unchanged
	}
	return errors.Join(err, r.report(ctx, o, status, message))
}

func (r reconciler) report(ctx context.Context, o *unstructured.Unstructured, status metav1.ConditionStatus, message string) error {
	condition := metav1.Condition{Type: "Ready", Status: status, Reason: "Ready", Message: message, LastTransitionTime: metav1.NewTime(r.now), ObservedGeneration: o.GetGeneration()}
	if status != metav1.ConditionTrue {
		condition.Reason = "DoesNotExist"
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(o.GroupVersionKind())
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(o), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	var have struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := decode(live, &have); err == nil {
		for _, c := range have.Status.Conditions {
			if c.Type == condition.Type && c.Status == condition.Status {
				condition.LastTransitionTime = c.LastTransitionTime
			}
		}
	}
	return r.writer.ApplyStatus(ctx, live, map[string]any{"conditions": []metav1.Condition{condition}})
}

// issueIfDue issues a Certificate if it is due, and records its CA in r.authorities.
func (r reconciler) issueIfDue(ctx context.Context, o *unstructured.Unstructured) error {
	var c certManagerCertificate
	if err := decode(o, &c); err != nil {
		return fault.New(fault.Invalid, reasonRequest, "the specification is invalid: %v", err).From(err)
	}
	if c.Spec.SecretName == "" {
		return fault.New(fault.Invalid, reasonRequest, "spec.secretName is not set; set the name of the Secret to write")
	}
	if c.Spec.Template != nil && (c.Spec.Template.Annotations[certificateName] != "" || c.Spec.Template.Annotations[requestHash] != "") {
		return fault.New(fault.Invalid, reasonRequest, "spec.secretTemplate.annotations sets an annotation that identifies the Secret; remove it")
	}
	secret, err := r.secret(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Spec.SecretName})
	if err != nil {
		return err
	}
	if !mayWriteSecret(secret, c) {
		return fault.New(fault.Invalid, reasonRequest, "Secret %s exists and was not issued for this Certificate; delete it, or set another name in spec.secretName", c.Spec.SecretName)
	}
	authority, err := r.authority(ctx, c)
	if err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: c.Namespace, Name: c.Name}
	if issueReason(c, secret, authority, r.now) == "" {
		r.authorities[key] = authorityOf(secret)
		return nil
	}
	out, err := issue(c.Spec, authority, r.now)
	if err != nil {
		return err
	}
	if err := r.store(ctx, c, secret, out); err != nil {
		return err
	}
	r.authorities[key] = out.Authority
	return nil
}

// secret reads a Secret; it returns nil if the Secret does not exist.
func (r reconciler) secret(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	err := r.client.Get(ctx, key, s)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
	}
	return s, err
}

func (r reconciler) store(ctx context.Context, c certManagerCertificate, live *corev1.Secret, out issuedCertificate) error {
	want := &unstructured.Unstructured{Object: map[string]any{
		"type": string(corev1.SecretTypeTLS),
		"data": map[string]any{"tls.crt": encode(out.Certificate), "tls.key": encode(out.Key), "ca.crt": encode(out.Authority)},
	}}
	want.SetGroupVersionKind(secretKind())
	want.SetNamespace(c.Namespace)
	want.SetName(c.Spec.SecretName)
	annotations := map[string]string{}
	if t := c.Spec.Template; t != nil {
		want.SetLabels(t.Labels)
		for name, value := range t.Annotations {
			annotations[name] = value
		}
	}
	annotations[certificateName], annotations[requestHash] = c.Name, c.Spec.hash()
	want.SetAnnotations(annotations)
	if live == nil {
		return r.writer.CreateApplied(ctx, want)
	}
	return r.writer.Apply(ctx, live, want)
}

// authority returns the CA that signs a Certificate; nil for a self-signed one.
func (r reconciler) authority(ctx context.Context, c certManagerCertificate) (*tls.Certificate, error) {
	kind, namespace := "Issuer", c.Namespace
	if c.Spec.IssuerRef.Kind == "ClusterIssuer" {
		kind, namespace = "ClusterIssuer", ""
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kindOf(kind))
	err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: c.Spec.IssuerRef.Name}, o)
	if apierrors.IsNotFound(err) {
		return nil, fault.New(fault.Invalid, reasonIssuer, "%s %s does not exist; create it", kind, c.Spec.IssuerRef.Name)
	}
	if err != nil {
		return nil, err
	}
	var i issuer
	if err := decode(o, &i); err != nil {
		return nil, fault.New(fault.Invalid, reasonIssuer, "%s %s is invalid: %v", kind, i.Name, err).From(err)
	}
	switch {
	case i.Spec.SelfSigned != nil:
		return nil, nil //nolint:nilnil // it signs itself
	case i.Spec.CA == nil:
		return nil, fault.New(fault.Invalid, reasonIssuer, "%s %s is neither a selfSigned nor a ca issuer; slipway supports only these, install cert-manager for others", kind, o.GetName())
	}
	if namespace == "" {
		namespace = clusterNamespace
	}
	secret, err := r.secret(ctx, client.ObjectKey{Namespace: namespace, Name: i.Spec.CA.SecretName})
	if err != nil {
		return nil, err
	}
	if secret == nil {
		return nil, fault.New(fault.Invalid, reasonIssuer, "%s %s refers to Secret %s in namespace %s, which does not exist; create the Secret, or the Certificate that issues it",
			kind, o.GetName(), i.Spec.CA.SecretName, namespace)
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil || !pair.Leaf.IsCA {
		return nil, fault.New(fault.Invalid, reasonIssuer, "Secret %s in namespace %s, which %s %s refers to, does not contain a CA certificate with its private key", secret.Name, namespace, kind, o.GetName())
	}
	return &pair, nil
}

package certificates

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// encode returns data in base64, as Secrets contain it. reconciler.store (reconcile.go) calls it.
func encode(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

// target is a kind whose objects can have an injected CA.
type target struct {
	kind   schema.GroupVersionKind
	object func() client.Object
	set    func(o client.Object, authority []byte)
}

// targets returns the kinds whose objects can have the annotation. [Controller] watches them, too.
func targets() []target {
	return []target{
		{
			admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"),
			func() client.Object { return &admissionregistrationv1.MutatingWebhookConfiguration{} }, setMutating,
		}, {
			admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"),
			func() client.Object { return &admissionregistrationv1.ValidatingWebhookConfiguration{} }, setValidating,
		}, {
			apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"),
			func() client.Object { return &apiextensionsv1.CustomResourceDefinition{} }, setConversion,
		},
	}
}

func setMutating(o client.Object, authority []byte) {
	if c, ok := o.(*admissionregistrationv1.MutatingWebhookConfiguration); ok {
		c.Webhooks = append([]admissionregistrationv1.MutatingWebhook(nil), c.Webhooks...)
		for i := range c.Webhooks {
			c.Webhooks[i].ClientConfig.CABundle = authority
		}
	}
}

func setValidating(o client.Object, authority []byte) {
	if c, ok := o.(*admissionregistrationv1.ValidatingWebhookConfiguration); ok {
		c.Webhooks = append([]admissionregistrationv1.ValidatingWebhook(nil), c.Webhooks...)
		for i := range c.Webhooks {
			c.Webhooks[i].ClientConfig.CABundle = authority
		}
	}
}

func setConversion(o client.Object, authority []byte) {
	crd, ok := o.(*apiextensionsv1.CustomResourceDefinition)
	if !ok || crd.Spec.Conversion == nil || crd.Spec.Conversion.Webhook == nil || crd.Spec.Conversion.Webhook.ClientConfig == nil {
		return
	}
	if bytes.Equal(crd.Spec.Conversion.Webhook.ClientConfig.CABundle, authority) {
		return
	}
	crd.Spec.Conversion = crd.Spec.Conversion.DeepCopy()
	crd.Spec.Conversion.Webhook.ClientConfig.CABundle = authority
}

// inject writes the CA of Certificates into the annotated webhook configurations and CRDs, as cert-manager's cainjector
// does. [Reconcile] calls it at the end.
func (r reconciler) inject(ctx context.Context) error {
	var problems []error
	for _, t := range targets() {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(t.kind.GroupVersion().WithKind(t.kind.Kind + "List"))
		if err := r.client.List(ctx, list); err != nil {
			return fmt.Errorf("listing %ss: %w", t.kind.Kind, err)
		}
		for i := range list.Items {
			namespace, name, ok := strings.Cut(list.Items[i].Annotations[injectFrom], "/")
			authority := r.authorities[client.ObjectKey{Namespace: namespace, Name: name}]
			if !ok || len(authority) == 0 {
				continue // no CA is requested, or the status of the Certificate reports the problem
			}
			o := t.object()
			if err := r.client.Get(ctx, client.ObjectKey{Name: list.Items[i].Name}, o); err != nil {
				problems = append(problems, client.IgnoreNotFound(err))
				continue
			}
			problems = append(problems, r.writer.Patch(ctx, o, func(o client.Object) { t.set(o, authority) }))
		}
	}
	return errors.Join(problems...)
}

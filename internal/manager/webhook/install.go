package webhook

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/manager/crds"
)

// FieldOwner is the name with which [kube.NewWriter] applies the webhook configurations, so their field manager is
// slipway-webhooks. Package manager recognizes by it what Slipway applied.
const FieldOwner = "webhooks"

// Install installs the CRDs with their conversion, waits until they are served, and applies the webhook configurations,
// all with the given address and CA bundle (PEM). The manager calls it before it starts and when its CA has changed.
// Unchanged objects are not written. The client c must not read from a cache.
func Install(ctx context.Context, c client.Client, address Address, ca []byte) error {
	if err := crds.Install(ctx, c, crds.Options{ConversionWebhook: address.conversionClient(ca), Sets: address.sets()}); err != nil {
		return fmt.Errorf("installing CRDs: %w", err)
	}
	return configure(ctx, c, address, ca)
}

// Objects returns the objects that [Install] writes, without a CA bundle, for the manifests of a release. They can be
// applied before a manager runs, which then adds its CA.
func Objects(address Address) ([]client.Object, error) {
	list, err := crds.Of(crds.Options{ConversionWebhook: address.conversionClient(nil), Sets: address.sets()})
	if err != nil {
		return nil, err
	}
	var out []client.Object
	for _, crd := range list {
		crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		out = append(out, crd)
	}
	return append(out, configurations(address, nil)...), nil
}

// configure applies the webhook configurations. Afterwards, the API server rejects writes of the matched
// kinds while no manager serves the address.
func configure(ctx context.Context, c client.Client, address Address, ca []byte) error {
	for _, config := range configurations(address, ca) {
		if err := applyOnce(ctx, c, config); err != nil {
			return fmt.Errorf("configuring webhooks: %w", err)
		}
	}
	return nil
}

// applyOnce applies a configuration unless the cluster has the same content already.
func applyOnce(ctx context.Context, c client.Client, config client.Object) error {
	object, hash, err := crds.Hashed(config, config.GetObjectKind().GroupVersionKind())
	if err != nil {
		return err
	}
	applied := &metav1.PartialObjectMetadata{}
	applied.SetGroupVersionKind(config.GetObjectKind().GroupVersionKind())
	err = c.Get(ctx, client.ObjectKeyFromObject(config), applied)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if applied.Annotations[crds.HashAnnotation] == hash {
		return nil
	}
	return kube.NewWriter(c, FieldOwner).Apply(ctx, nil, object)
}

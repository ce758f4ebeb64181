package install

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
)

// Objects finds the installed objects of providers of any kind, by their labels, without the inventory objects, for
// "slipway delete" and "upgrade apply". It returns an error if a kind cannot be listed, because its objects would
// otherwise be left behind.
func Objects(ctx context.Context, c client.Reader, kinds []schema.GroupVersionKind, providers []provider.Installed) ([]InstalledProvider, error) {
	var out []InstalledProvider
	for _, p := range providers {
		out = append(out, InstalledProvider{Installed: p})
	}
	if len(out) == 0 {
		return nil, nil
	}
	for _, kind := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := c.List(ctx, list, client.HasLabels{provider.NameLabel})
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			continue // the kind was deleted, or cannot be listed
		}
		if err != nil {
			return nil, fmt.Errorf("listing the %ss of providers: %w", kind.Kind, err)
		}
		for _, o := range list.Items {
			for i := range out {
				if out[i].Label() == o.Labels[provider.NameLabel] {
					out[i].Objects = append(out[i].Objects, identity(kind, o.Namespace, o.Name))
				}
			}
		}
	}
	return out, nil
}

// identity returns an object with kind, namespace and name.
func identity(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// Kinds returns the kinds that objects of components may have: all that can be listed and deleted, in their preferred
// versions. The commands that delete or upgrade providers call it to find their objects.
func Kinds(d discovery.DiscoveryInterface) ([]schema.GroupVersionKind, error) {
	lists, err := d.ServerPreferredResources()
	var partial *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partial) {
		return nil, fmt.Errorf("listing the kinds of the management cluster: %w", err)
	}
	// Endpoints and EndpointSlices copy the labels of their Service, which takes them along. Plans have steps of their
	// own for inventory objects.
	skip := []schema.GroupKind{{Kind: "Event"}, {Group: "events.k8s.io", Kind: "Event"}, {Kind: "Endpoints"}, {Group: "discovery.k8s.io", Kind: "EndpointSlice"}, provider.InventoryKind().GroupKind()}
	var out []schema.GroupVersionKind
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			kind := gv.WithKind(r.Kind)
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "delete") && !slices.Contains(skip, kind.GroupKind()) {
				out = append(out, kind)
			}
		}
	}
	return out, nil
}

// asStored returns a Secret with stringData converted to data, the form in which the API server stores it, so that
// applying it again is not a change. [Runner.Run] calls it for each object that it applies.
func asStored(o *unstructured.Unstructured) *unstructured.Unstructured {
	texts, _, err := unstructured.NestedStringMap(o.Object, "stringData")
	if o.GroupVersionKind() != corev1.SchemeGroupVersion.WithKind("Secret") || err != nil || len(texts) == 0 {
		return o
	}
	out := o.DeepCopy()
	data, _, err := unstructured.NestedMap(out.Object, "data")
	if err != nil || data == nil {
		data = map[string]any{}
	}
	for key, text := range texts {
		data[key] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	out.Object["data"] = data
	delete(out.Object, "stringData")
	return out
}

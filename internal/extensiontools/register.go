package extensiontools

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
)

// RunAnnotation marks ExtensionConfigs that were registered by `slipway extension run`. Only these are updated by a
// later run with the same name.
const RunAnnotation = "extension.slipway.dev/run"

// manager is the field manager of the registration.
const manager = client.FieldOwner("slipway-extension-run")

// LocalRegistration is an extension on this machine. `slipway extension run` fills in the name, and [RunSession] the
// URL.
type LocalRegistration struct {
	Name string
	// URL is the URL for the management cluster, and CA the PEM-encoded CA of its certificate.
	URL string
	CA  []byte
	// Namespace limits the extension to one namespace; empty for all.
	Namespace string
	// Settings are added to every request.
	Settings map[string]string
}

// register creates the ExtensionConfig of a local extension, or updates one that an earlier run left behind.
// [RunSession] calls it when the extension responds.
func register(ctx context.Context, c client.Client, l LocalRegistration) (*runtimev1.ExtensionConfig, error) {
	config := &runtimev1.ExtensionConfig{}
	err := c.Get(ctx, client.ObjectKey{Name: l.Name}, config)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	exists := err == nil
	if _, ours := config.Annotations[RunAnnotation]; exists && !ours {
		return nil, fault.New(fault.Invalid, "NameTaken",
			"the management cluster has an extension %q already, which does not come from \"slipway extension run\"; choose another name with --name", l.Name)
	}
	config.Name = l.Name
	metav1.SetMetaDataAnnotation(&config.ObjectMeta, RunAnnotation, "true")
	config.Spec = runtimev1.ExtensionConfigSpec{
		ClientConfig: runtimev1.ClientConfig{URL: l.URL, CABundle: l.CA}, Settings: l.Settings,
	}
	if l.Namespace != "" {
		config.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: l.Namespace}}
	}
	if exists {
		return config, c.Update(ctx, config, manager)
	}
	return config, c.Create(ctx, config, manager)
}

// DeleteRegistration deletes an ExtensionConfig by name, for `slipway extension delete`. If it does not exist, the Gone
// fault lists the existing names.
func DeleteRegistration(ctx context.Context, c client.Client, name string) error {
	err := c.Delete(ctx, &runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if apierrors.IsNotFound(err) {
		return unknown(ctx, c, name)
	}
	return err
}

// deleteRegistered deletes the ExtensionConfig created by [register], unless another client has replaced it.
func deleteRegistered(ctx context.Context, c client.Client, config *runtimev1.ExtensionConfig) error {
	err := c.Delete(ctx, config, client.Preconditions{UID: &config.UID})
	if apierrors.IsConflict(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}

// unknown returns the fault for the name of an extension that does not exist.
func unknown(ctx context.Context, c client.Client, name string) error {
	all, err := ListExtensions(ctx, c)
	if err != nil {
		return err
	}
	var names []string
	for _, config := range all {
		names = append(names, config.Name)
	}
	there := "there are none; \"slipway extension run\" registers one"
	if len(names) > 0 {
		there = "there are: " + strings.Join(names, ", ")
	}
	return fault.New(fault.Gone, "ExtensionNotFound", "there is no extension %q; %s", name, there)
}

// ListExtensions returns all extensions, sorted by name. `slipway extension list`, `slipway extension check` and [Call]
// call it.
func ListExtensions(ctx context.Context, c client.Client) ([]runtimev1.ExtensionConfig, error) {
	var list runtimev1.ExtensionConfigList
	if err := c.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing the extensions: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b runtimev1.ExtensionConfig) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

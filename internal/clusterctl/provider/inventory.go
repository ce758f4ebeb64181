package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
)

const (
	// crdName is the name of the CRD of Provider objects. Existing management clusters have the names in this block, so
	// they must not change.
	crdName = "providers.clusterctl.cluster.x-k8s.io"
	// CoreLabel marks prerequisites of the commands: the inventory, and cert-manager.
	CoreLabel = "clusterctl.cluster.x-k8s.io/core"
	// coreInventory is the value of CoreLabel on inventory objects.
	coreInventory = "inventory"
	// stateAnnotation marks a provider whose installation has not finished.
	stateAnnotation = "clusterctl.slipway.dev/state"
	// stateInstalling is the only value of stateAnnotation.
	stateInstalling = "Installing"
	// nextAnnotation is the version of an upgrade that has started and not finished.
	nextAnnotation = "clusterctl.slipway.dev/next-version"
	// formerAnnotation is the version that an upgrade has replaced, until the new version is available.
	formerAnnotation = "clusterctl.slipway.dev/former-version"
	// builtInAnnotation marks a provider that is built into the management cluster.
	builtInAnnotation = "clusterctl.slipway.dev/built-in"
	// updatedAnnotation is the time of the last write.
	updatedAnnotation = "clusterctl.slipway.dev/updated-at"
)

// InventoryKind returns the kind of inventory objects. Group, version, kind and fields are clusterctl's, so that both
// programs read the same inventory.
func InventoryKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "clusterctl.cluster.x-k8s.io", Version: "v1alpha3", Kind: "Provider"}
}

// Installed is an installed provider: an entry of the inventory. Its JSON form is part of backups and of the output of
// "slipway upgrade plan". [ReadInventory] returns it.
type Installed struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Type      Type   `json:"type"`
	Version   string `json:"version"`
	// Installing means that the installation has started and not finished.
	Installing bool `json:"installing,omitempty"`
	// TargetVersion is the version of an upgrade that has started and not finished.
	TargetVersion string `json:"next,omitempty"`
	// Applied means that the components of TargetVersion are installed, but their availability is not confirmed yet.
	Applied bool `json:"applied,omitempty"`
	// BuiltIn means that the provider runs in the process of the management cluster. It is recorded for other programs.
	BuiltIn bool `json:"builtIn,omitempty"`
	// UpdatedAt is the time of the last write in RFC 3339 format; empty if another program wrote the object.
	UpdatedAt string `json:"updatedAt,omitempty"`
}

// Label returns the label of the provider, which is also the name of its inventory object.
func (p Installed) Label() string { return p.Type.Label(p.Name) }

// Current returns the version of the installed components.
func (p Installed) Current() string {
	if p.Applied {
		return p.TargetVersion
	}
	return p.Version
}

// Object returns the inventory object to apply. Its version is the current one, for other programs. Plans of package
// install apply or delete it.
func (p Installed) Object() *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"providerName": p.Name, "type": string(p.Type), "version": p.Current(),
	}}
	o.SetGroupVersionKind(InventoryKind())
	o.SetNamespace(p.Namespace)
	o.SetName(p.Label())
	o.SetLabels(map[string]string{ComponentLabel: "", NameLabel: p.Label(), CoreLabel: coreInventory})
	annotations := map[string]string{}
	if p.Installing {
		annotations[stateAnnotation] = stateInstalling
	}
	if p.TargetVersion != "" {
		annotations[nextAnnotation] = p.TargetVersion
	}
	if p.Applied {
		annotations[formerAnnotation] = p.Version
	}
	if p.BuiltIn {
		annotations[builtInAnnotation] = "true"
	}
	if p.UpdatedAt != "" {
		annotations[updatedAnnotation] = p.UpdatedAt
	}
	if len(annotations) > 0 {
		o.SetAnnotations(annotations)
	}
	return o
}

// ReadInventory lists the installed providers, without built-in ones; see [ReadProviderObjects]. The commands for
// providers and backups call it.
func ReadInventory(ctx context.Context, c client.Reader) ([]Installed, error) {
	all, err := ReadProviderObjects(ctx, c)
	return slices.DeleteFunc(all, func(p Installed) bool { return p.BuiltIn }), err
}

// ReadProviderObjects lists all providers, sorted by type, name and namespace. It returns none if the CRD does not
// exist. An invalid object, for example one written by hand, is an Invalid fault. Package install reads the recorded
// built-in providers with it.
func ReadProviderObjects(ctx context.Context, c client.Reader) ([]Installed, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(InventoryKind().GroupVersion().WithKind("ProviderList"))
	if err := c.List(ctx, list); err != nil {
		if meta.IsNoMatchError(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("listing the installed providers: %w", err)
	}
	var out []Installed
	for _, o := range list.Items {
		p, err := providerOf(&o)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	slices.SortFunc(out, CompareInstalled)
	return out, nil
}

func providerOf(o *unstructured.Unstructured) (Installed, error) {
	p := Installed{Namespace: o.GetNamespace()}
	text := func(field string) string {
		s, _, _ := unstructured.NestedString(o.Object, field)
		return s
	}
	p.Name, p.Type, p.Version = text("providerName"), Type(text("type")), text("version")
	p.BuiltIn = IsBuiltIn(o)
	p.Installing = o.GetAnnotations()[stateAnnotation] == stateInstalling
	p.TargetVersion = o.GetAnnotations()[nextAnnotation]
	p.UpdatedAt = o.GetAnnotations()[updatedAnnotation]
	if former := o.GetAnnotations()[formerAnnotation]; former != "" && p.Version != "" {
		p.Version, p.TargetVersion, p.Applied = former, p.Version, true
	}
	if p.Name == "" || p.Version == "" || !slices.Contains(Types(), p.Type) {
		return p, fault.New(fault.Invalid, "InvalidProviderRecord",
			"Provider %s in namespace %s is invalid: providerName is %q, type is %q and version is %q; correct or delete it",
			o.GetName(), o.GetNamespace(), p.Name, p.Type, p.Version)
	}
	return p, nil
}

// IsBuiltIn reports whether an inventory object describes a built-in provider.
func IsBuiltIn(record client.Object) bool {
	return record.GetAnnotations()[builtInAnnotation] == "true"
}

// CompareInstalled orders providers by type, name and namespace. Package install deletes providers in the reverse
// order.
func CompareInstalled(a, b Installed) int {
	if c := Compare(Provider{Name: a.Name, Type: a.Type}, Provider{Name: b.Name, Type: b.Type}); c != 0 {
		return c
	}
	return strings.Compare(a.Namespace, b.Namespace)
}

// FindInstalled returns all installations of a provider, in any namespace. Packages install and providerupgrade select
// providers with it.
func FindInstalled(all []Installed, t Type, name string) []Installed {
	return slices.DeleteFunc(slices.Clone(all), func(p Installed) bool { return p.Type != t || p.Name != name })
}

// InventoryCRD returns the CRD of inventory objects. Every installation applies it before the inventory objects.
func InventoryCRD() *unstructured.Unstructured {
	text := func(description string) map[string]any {
		return map[string]any{"type": "string", "description": description}
	}
	column := func(name, path string) map[string]any {
		return map[string]any{"name": name, "type": "string", "jsonPath": path}
	}
	crd := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": InventoryKind().Group,
		"names": map[string]any{"kind": InventoryKind().Kind, "listKind": "ProviderList", "plural": "providers", "singular": "provider"},
		"scope": "Namespaced",
		"versions": []any{map[string]any{
			"name": InventoryKind().Version, "served": true, "storage": true,
			"additionalPrinterColumns": []any{
				map[string]any{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
				column("Type", ".type"), column("Provider", ".providerName"), column("Version", ".version"),
			},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "description": "A provider that is installed in this management cluster.",
				"properties": map[string]any{
					"apiVersion": text("Group and version of the kind."), "kind": text("The kind."), "metadata": map[string]any{"type": "object"},
					"providerName":     text("Name of the provider, without its type."),
					"type":             text("Type of the provider, for example InfrastructureProvider."),
					"version":          text("Installed version."),
					"watchedNamespace": text("Deprecated: the namespace that the provider watches. The field is ignored."),
				},
			}},
		}},
	}}}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName(crdName)
	crd.SetLabels(map[string]string{ComponentLabel: "", CoreLabel: coreInventory})
	return crd
}

package inventory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/fault"
)

const (
	// CRDName is the name of the CRD of the record.
	CRDName = "providers.clusterctl.cluster.x-k8s.io"
	// CoreLabel marks what the verbs need for themselves: the record, and cert-manager.
	CoreLabel = "clusterctl.cluster.x-k8s.io/core"
	// coreInventory is the value of CoreLabel on the record.
	coreInventory = "inventory"
	// stateAnnotation says on a record that its installation has not ended.
	stateAnnotation = "clusterctl.slipway.dev/state"
	// stateInstalling is its only value.
	stateInstalling = "Installing"
	// nextAnnotation has the version on a record that an upgrade has begun to install and not ended.
	nextAnnotation = "clusterctl.slipway.dev/next-version"
	// formerAnnotation has the version on a record that an upgrade has replaced, until the new one is available.
	formerAnnotation = "clusterctl.slipway.dev/former-version"
	// builtInAnnotation marks the record of a provider that is built into the management cluster.
	builtInAnnotation = "clusterctl.slipway.dev/built-in"
	// updatedAnnotation says when the record was written last.
	updatedAnnotation = "clusterctl.slipway.dev/updated-at"
)

// Kind of the record.
func Kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "clusterctl.cluster.x-k8s.io", Version: "v1alpha3", Kind: "Provider"}
}

// Provider is a provider that is installed.
type Provider struct {
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	Type      provider.Type `json:"type"`
	Version   string        `json:"version"`
	// Installing: the installation has begun and not ended.
	Installing bool `json:"installing,omitempty"`
	// Next is the version that an upgrade has begun to install and not ended.
	Next string `json:"next,omitempty"`
	// Applied: the components of Next are installed, and not yet known to be available.
	Applied bool `json:"applied,omitempty"`
	// BuiltIn: the provider runs in the process of the management cluster. Its record tells other programs so.
	BuiltIn bool `json:"builtIn,omitempty"`
	// UpdatedAt is when the record was written last, in the form of RFC 3339; empty: another program wrote it.
	UpdatedAt string `json:"updatedAt,omitempty"`
}

// Label of the provider, which is the name of its record.
func (p Provider) Label() string { return p.Type.Label(p.Name) }

// Current is the version of the components that are installed.
func (p Provider) Current() string {
	if p.Applied {
		return p.Next
	}
	return p.Version
}

// Object is the record as it is applied. Its version is the current one, which other programs read.
func (p Provider) Object() *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"providerName": p.Name, "type": string(p.Type), "version": p.Current(),
	}}
	o.SetGroupVersionKind(Kind())
	o.SetNamespace(p.Namespace)
	o.SetName(p.Label())
	o.SetLabels(map[string]string{provider.ComponentLabel: "", provider.NameLabel: p.Label(), CoreLabel: coreInventory})
	annotations := map[string]string{}
	if p.Installing {
		annotations[stateAnnotation] = stateInstalling
	}
	if p.Next != "" {
		annotations[nextAnnotation] = p.Next
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

// Read lists what was installed; see [ReadAll]. What is built in was not.
func Read(ctx context.Context, c client.Reader) ([]Provider, error) {
	all, err := ReadAll(ctx, c)
	return slices.DeleteFunc(all, func(p Provider) bool { return p.BuiltIn }), err
}

// ReadAll lists the record, sorted by type, name and namespace. A cluster without the CRD has an empty one. A record that was
// written by hand and cannot be understood is an Invalid fault.
func ReadAll(ctx context.Context, c client.Reader) ([]Provider, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(Kind().GroupVersion().WithKind("ProviderList"))
	if err := c.List(ctx, list); err != nil {
		if meta.IsNoMatchError(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("listing the providers that are installed: %w", err)
	}
	var out []Provider
	for _, o := range list.Items {
		p, err := providerOf(&o)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	slices.SortFunc(out, Compare)
	return out, nil
}

func providerOf(o *unstructured.Unstructured) (Provider, error) {
	p := Provider{Namespace: o.GetNamespace()}
	text := func(field string) string {
		s, _, _ := unstructured.NestedString(o.Object, field)
		return s
	}
	p.Name, p.Type, p.Version = text("providerName"), provider.Type(text("type")), text("version")
	p.BuiltIn = BuiltIn(o)
	p.Installing = o.GetAnnotations()[stateAnnotation] == stateInstalling
	p.Next = o.GetAnnotations()[nextAnnotation]
	p.UpdatedAt = o.GetAnnotations()[updatedAnnotation]
	if former := o.GetAnnotations()[formerAnnotation]; former != "" && p.Version != "" {
		p.Version, p.Next, p.Applied = former, p.Version, true
	}
	if p.Name == "" || p.Version == "" || !slices.Contains(provider.Types(), p.Type) {
		return p, fault.New(fault.Invalid, "InvalidProviderRecord",
			"Provider %s in namespace %s has the providerName %q, the type %q and the version %q, which is no provider; correct or delete it",
			o.GetName(), o.GetNamespace(), p.Name, p.Type, p.Version)
	}
	return p, nil
}

// BuiltIn reports whether a record is that of a provider that is built into the management cluster.
func BuiltIn(record client.Object) bool { return record.GetAnnotations()[builtInAnnotation] == "true" }

// Compare orders providers by type, name and namespace.
func Compare(a, b Provider) int {
	if c := provider.Compare(provider.Provider{Name: a.Name, Type: a.Type}, provider.Provider{Name: b.Name, Type: b.Type}); c != 0 {
		return c
	}
	return strings.Compare(a.Namespace, b.Namespace)
}

// Find returns what is recorded of a provider, in whatever namespaces.
func Find(all []Provider, t provider.Type, name string) []Provider {
	return slices.DeleteFunc(slices.Clone(all), func(p Provider) bool { return p.Type != t || p.Name != name })
}

// CRD is that of the record.
func CRD() *unstructured.Unstructured {
	text := func(description string) map[string]any {
		return map[string]any{"type": "string", "description": description}
	}
	column := func(name, path string) map[string]any {
		return map[string]any{"name": name, "type": "string", "jsonPath": path}
	}
	crd := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": Kind().Group,
		"names": map[string]any{"kind": Kind().Kind, "listKind": "ProviderList", "plural": "providers", "singular": "provider"},
		"scope": "Namespaced",
		"versions": []any{map[string]any{
			"name": Kind().Version, "served": true, "storage": true,
			"additionalPrinterColumns": []any{
				map[string]any{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
				column("Type", ".type"), column("Provider", ".providerName"), column("Version", ".version"),
			},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "description": "A provider that is installed in this cluster.",
				"properties": map[string]any{
					"apiVersion": text("Group and version of the kind."), "kind": text("The kind."), "metadata": map[string]any{"type": "object"},
					"providerName":     text("Name of the provider, without its type."),
					"type":             text("What the provider provides, for example InfrastructureProvider."),
					"version":          text("Version that is installed."),
					"watchedNamespace": text("Was the one namespace that the provider watches. It is read by no one now."),
				},
			}},
		}},
	}}}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName(CRDName)
	crd.SetLabels(map[string]string{provider.ComponentLabel: "", CoreLabel: coreInventory})
	return crd
}

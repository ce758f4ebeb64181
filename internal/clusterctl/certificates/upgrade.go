package certificates

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/component"
	"github.com/slipwayhq/slipway/internal/clusterctl/configfile"
	"github.com/slipwayhq/slipway/internal/clusterctl/installation"
	"github.com/slipwayhq/slipway/internal/clusterctl/inventory"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
)

// Upgrade is what an upgrade does about cert-manager.
type Upgrade struct {
	// Provisioner says who satisfies Certificates. Only a cert-manager that init has installed is upgraded.
	Provisioner Provisioner `json:"provisioner"`
	// From is the version that is installed.
	From string `json:"from,omitempty"`
	// To is the version of the configuration file.
	To string `json:"to,omitempty"`
	// Why it is installed again; empty: it is up to date.
	Why   string              `json:"why,omitempty"`
	Steps []installation.Step `json:"-"`
}

// String is a sentence about it.
func (u Upgrade) String() string {
	switch {
	case u.Provisioner == Slipway:
		return "Slipway satisfies the objects of cert-manager itself."
	case u.Provisioner == Other:
		return "Cert-manager was not installed by init, and is left alone."
	case u.Provisioner == Unsatisfied:
		return "Cert-manager is not installed."
	case u.Why == "":
		return "Cert-manager is up to date."
	}
	return fmt.Sprintf("Cert-manager will be upgraded from %s to %s: %s.", u.From, u.To, u.Why)
}

// PlanUpgrade reads what is installed of cert-manager, and plans what to do about it. kinds are those of the management cluster.
func PlanUpgrade(ctx context.Context, c client.Client, kinds []schema.GroupVersionKind, config *configfile.File) (Upgrade, error) {
	who, err := Who(ctx, c)
	out := Upgrade{Provisioner: who}
	if err != nil || who != CertManager {
		return out, err
	}
	live, err := installedObjects(ctx, c, kinds)
	if err != nil {
		return out, err
	}
	want, err := Manifest(ctx, config)
	if err != nil {
		return out, err
	}
	out.From, out.To = versionOf(live), config.CertManager.Version
	if out.Why = differs(live, want, out); out.Why == "" {
		return out, nil
	}
	for _, o := range want {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if o.GetKind() != "CustomResourceDefinition" || decode(o, crd) != nil {
			continue
		}
		before := &apiextensionsv1.CustomResourceDefinition{}
		err := c.Get(ctx, client.ObjectKeyFromObject(o), before)
		if err != nil && !apierrors.IsNotFound(err) {
			return out, err
		}
		if slices.ContainsFunc(before.Status.StoredVersions, func(v string) bool { return !serves(crd, v) }) {
			out.Steps = append(out.Steps, installation.Step{Verb: installation.Migrate, Object: o, Why: "the new CRD does not have all versions that were stored"})
		}
	}
	out.Steps = append(out.Steps, surplus(live, want)...)
	out.Steps = append(out.Steps, Installed(want, config.CertManager.Timeout)...)
	return out, nil
}

func serves(crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	return slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
}

// surplus deletes what the manifest does not have. CRDs, namespaces and webhook configurations stay.
func surplus(live, want []*unstructured.Unstructured) []installation.Step {
	var out []installation.Step
	ordered := component.InstallOrder(live)
	slices.Reverse(ordered)
	keep := []string{"CustomResourceDefinition", "Namespace", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
	for _, o := range ordered {
		if !slices.Contains(keep, o.GetKind()) && !slices.ContainsFunc(want, func(w *unstructured.Unstructured) bool { return name(w) == name(o) }) {
			out = append(out, installation.Step{Verb: installation.Delete, Object: o, Why: "the new version does not have it"})
		}
	}
	return out
}

func name(o *unstructured.Unstructured) [4]string {
	return [4]string{o.GroupVersionKind().Group, o.GetKind(), o.GetNamespace(), o.GetName()}
}

// differs says why cert-manager is to be installed again; empty: it is not. A newer one than the configured one is left.
func differs(live, want []*unstructured.Unstructured, u Upgrade) string {
	from, fromErr := repository.ParseVersion(u.From)
	to, toErr := repository.ParseVersion(u.To)
	switch {
	case fromErr != nil || toErr != nil:
		if u.From != u.To {
			return "its version is another one"
		}
	case from.GT(to):
		return ""
	case from.LT(to):
		return "a newer version is configured"
	}
	if len(live) != len(want) {
		return fmt.Sprintf("%d of its objects are there, and the version has %d", len(live), len(want))
	}
	if have, needs := Images(live), Images(want); !slices.Equal(have, needs) {
		return "its images are other ones"
	}
	return ""
}

// versionOf is the version that the objects have; where they differ, an upgrade was interrupted, and it is the oldest one.
func versionOf(live []*unstructured.Unstructured) string {
	oldest := ""
	for _, o := range live {
		v := o.GetAnnotations()[VersionAnnotation]
		parsed, err := repository.ParseVersion(v)
		before, beforeErr := repository.ParseVersion(oldest)
		if oldest == "" || err == nil && beforeErr == nil && parsed.LT(before) {
			oldest = v
		}
	}
	return oldest
}

// installedObjects are those of cert-manager that init has installed, whole where they have images.
func installedObjects(ctx context.Context, c client.Reader, kinds []schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, kind := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := c.List(ctx, list, client.MatchingLabels{inventory.CoreLabel: coreCertManager})
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing the %ss of cert-manager: %w", kind.Kind, err)
		}
		for _, item := range list.Items {
			o := &unstructured.Unstructured{}
			o.SetGroupVersionKind(kind)
			if err := c.Get(ctx, client.ObjectKeyFromObject(&item), o); err != nil {
				if apierrors.IsNotFound(err) {
					continue
				}
				return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, item.Name, err)
			}
			out = append(out, o)
		}
	}
	return out, nil
}

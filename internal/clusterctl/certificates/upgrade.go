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

	"github.com/slipwayhq/slipway/internal/clusterctl/install"
	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/version"
)

// Upgrade describes how cert-manager is upgraded, also in the structured output of "slipway upgrade plan" and "upgrade
// apply".
type Upgrade struct {
	// Provisioner satisfies the Certificates of the cluster. Only a cert-manager that init has installed is upgraded.
	Provisioner Provisioner `json:"provisioner"`
	// From is the installed version.
	From string `json:"from,omitempty"`
	// To is the version in the configuration file.
	To string `json:"to,omitempty"`
	// Reason is the reason for the upgrade; empty if cert-manager is up to date.
	Reason string         `json:"why,omitempty"`
	Steps  []install.Step `json:"-"`
}

// String describes the upgrade in one sentence.
func (u Upgrade) String() string {
	switch {
	case u.Provisioner == Slipway:
		return "Slipway manages the cert-manager objects itself."
	case u.Provisioner == otherCertManager:
		return "Cert-manager was not installed by init, so it is not upgraded."
	case u.Provisioner == unsatisfied:
		return "Cert-manager is not installed."
	case u.Reason == "":
		return "Cert-manager is up to date."
	}
	return fmt.Sprintf("Cert-manager will be upgraded from %s to %s: %s.", u.From, u.To, u.Reason)
}

// PlanUpgrade reads the installed objects of cert-manager and plans their upgrade, for "slipway upgrade plan" and
// "upgrade apply". kinds are the resource kinds of the management cluster.
func PlanUpgrade(ctx context.Context, c client.Client, kinds []schema.GroupVersionKind, config *repository.ConfigFile) (Upgrade, error) {
	who, err := getProvisioner(ctx, c)
	out := Upgrade{Provisioner: who}
	if err != nil || who != certManager {
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
	if out.Reason = upgradeReason(live, want, out); out.Reason == "" {
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
			out.Steps = append(out.Steps, install.Step{Verb: install.Migrate, Object: o, Why: "the new CRD does not have all stored versions"})
		}
	}
	out.Steps = append(out.Steps, deleteObsolete(live, want)...)
	out.Steps = append(out.Steps, installSteps(want, config.CertManager.Timeout)...)
	return out, nil
}

func serves(crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	return slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
}

// deleteObsolete returns steps that delete the objects missing from the new manifest. CRDs, Namespaces and webhook
// configurations are retained.
func deleteObsolete(live, want []*unstructured.Unstructured) []install.Step {
	var out []install.Step
	ordered := repository.InstallOrder(live)
	slices.Reverse(ordered)
	keep := []string{"CustomResourceDefinition", "Namespace", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
	for _, o := range ordered {
		if !slices.Contains(keep, o.GetKind()) && !slices.ContainsFunc(want, func(w *unstructured.Unstructured) bool { return name(w) == name(o) }) {
			out = append(out, install.Step{Verb: install.Delete, Object: o, Why: "the new version does not include it"})
		}
	}
	return out
}

func name(o *unstructured.Unstructured) [4]string {
	return [4]string{o.GroupVersionKind().Group, o.GetKind(), o.GetNamespace(), o.GetName()}
}

// upgradeReason returns the reason to install cert-manager again, or "" if there is none. A version newer than the
// configured one is left unchanged.
func upgradeReason(live, want []*unstructured.Unstructured, u Upgrade) string {
	from, fromErr := version.ParseSemantic(u.From)
	to, toErr := version.ParseSemantic(u.To)
	switch {
	case fromErr != nil || toErr != nil:
		if u.From != u.To {
			return "its version differs from the configured one"
		}
	case from.Compare(to) > 0:
		return ""
	case from.Compare(to) < 0:
		return "a newer version is configured"
	}
	if len(live) != len(want) {
		return fmt.Sprintf("%d of its objects exist, but the configured version has %d", len(live), len(want))
	}
	if have, needs := Images(live), Images(want); !slices.Equal(have, needs) {
		return "its images differ from the configured ones"
	}
	return ""
}

// versionOf returns the version of the installed objects. After an interrupted upgrade they have several versions; the
// oldest is returned.
func versionOf(live []*unstructured.Unstructured) string {
	oldest := ""
	for _, o := range live {
		v := o.GetAnnotations()[versionAnnotation]
		parsed, err := version.ParseSemantic(v)
		before, beforeErr := version.ParseSemantic(oldest)
		if oldest == "" || err == nil && beforeErr == nil && parsed.Compare(before) < 0 {
			oldest = v
		}
	}
	return oldest
}

// installedObjects returns the cert-manager objects that init has installed.
func installedObjects(ctx context.Context, c client.Reader, kinds []schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, kind := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := c.List(ctx, list, client.MatchingLabels{provider.CoreLabel: coreCertManager})
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

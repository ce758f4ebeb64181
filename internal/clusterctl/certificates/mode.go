package certificates

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/component"
	"github.com/slipwayhq/slipway/internal/clusterctl/configfile"
	"github.com/slipwayhq/slipway/internal/clusterctl/installation"
	"github.com/slipwayhq/slipway/internal/clusterctl/inventory"
	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/clusterctl/selection"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/whatif/input"
)

// Mode says who satisfies the objects of cert-manager.
type Mode string

// The modes.
const (
	Builtin   Mode = "builtin"
	Install   Mode = "install"
	External  Mode = "external"
	Automatic Mode = "automatic"
)

// VersionAnnotation has the version of cert-manager on all its objects.
const VersionAnnotation = "cert-manager.clusterctl.cluster.x-k8s.io/version"

// ParseMode reads the value of --cert-manager; the error is Invalid.
func ParseMode(s string) (Mode, error) {
	all := []Mode{Builtin, Install, External, Automatic}
	if m := Mode(s); slices.Contains(all, m) {
		return m, nil
	}
	return "", fault.New(fault.Invalid, "Usage", "--cert-manager %s is not known; use builtin, install, external or automatic", s)
}

// Provisioner is who satisfies Certificates in a management cluster.
type Provisioner string

// The provisioners.
const (
	// Unsatisfied: the kinds of cert-manager are not there.
	Unsatisfied Provisioner = ""
	// Slipway: the kinds are ours.
	Slipway Provisioner = "slipway"
	// CertManager was installed by init, of this program or of clusterctl.
	CertManager Provisioner = "cert-manager"
	// Other: cert-manager that was not installed by init, and is left alone.
	Other Provisioner = "other"
)

// Who says who satisfies Certificates.
func Who(ctx context.Context, c client.Reader) (Provisioner, error) {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	err := c.Get(ctx, client.ObjectKey{Name: certificatesCRD}, crd)
	switch {
	case apierrors.IsNotFound(err):
		return Unsatisfied, nil
	case err != nil:
		return Unsatisfied, fmt.Errorf("reading who satisfies Certificates: %w", err)
	case crd.GetLabels()[ownLabel] == ownValue && describes(crd):
		return Slipway, nil
	case crd.GetLabels()[inventory.CoreLabel] == coreCertManager:
		return CertManager, nil
	}
	return Other, nil
}

// describes reports whether the schema of a CRD is ours.
func describes(crd *unstructured.Unstructured) bool {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	return slices.ContainsFunc(versions, func(v any) bool {
		version, _ := v.(map[string]any)
		description, _, _ := unstructured.NestedString(version, "schema", "openAPIV3Schema", "description")
		return description == ownDescription
	})
}

// Steps are what a management cluster needs before components with objects of cert-manager are installed. builtin reports
// whether [Reconcile] satisfies them.
func Steps(ctx context.Context, c client.Client, mode Mode, config *configfile.File) (steps []installation.Step, builtin bool, err error) {
	who, err := Who(ctx, c)
	if err != nil {
		return nil, false, err
	}
	if mode == Automatic {
		if mode, err = automatic(ctx, c, who, config.CertManager.ExternallyProvisioned); err != nil {
			return nil, false, err
		}
	}
	switch {
	case mode == Builtin && (who == CertManager || who == Other):
		return nil, false, fault.New(fault.Invalid, "CertManagerInstalled", "cert-manager is installed in this cluster; use --cert-manager external")
	case mode == Builtin:
		return builtinSteps(), true, nil
	case mode == Install && who == Other:
		return nil, false, fault.New(fault.Invalid, "CertManagerInstalled", "cert-manager is in this cluster and was not installed by init; use --cert-manager external")
	case mode == Install:
		if who == Slipway {
			if err := unused(ctx, c); err != nil {
				return nil, false, err
			}
		}
		objects, err := Manifest(ctx, config)
		return Installed(objects, config.CertManager.Timeout), false, err
	}
	return nil, false, nil
}

// unused refuses to put cert-manager in the place of Slipway where Slipway has issued something.
func unused(ctx context.Context, c client.Reader) error {
	for _, kind := range []string{"Certificate", "Issuer", "ClusterIssuer"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kindOf(kind + "List"))
		if err := c.List(ctx, list, client.Limit(1)); err != nil {
			return fmt.Errorf("listing %ss: %w", kind, err)
		}
		if len(list.Items) > 0 {
			return fault.New(fault.Invalid, "CertManagerBuiltin",
				"slipway satisfies the objects of cert-manager in this cluster, %s %s among them; use --cert-manager builtin, or delete them before cert-manager is installed",
				kind, client.ObjectKeyFromObject(&list.Items[0]))
		}
	}
	return nil
}

func builtinSteps() []installation.Step {
	var apply, serve []installation.Step
	for _, o := range CRDs() {
		apply = append(apply, installation.Step{Verb: installation.Apply, Object: o, Why: "slipway satisfies it in the place of cert-manager"})
		serve = append(serve, installation.Step{Verb: installation.Serve, Object: o})
	}
	return append(apply, serve...)
}

// automatic is the mode where none is named. A cert-manager that init has installed and that does not answer is installed
// again: an earlier command may have been interrupted.
func automatic(ctx context.Context, c client.Client, who Provisioner, external bool) (Mode, error) {
	switch {
	case who == Slipway:
		return Builtin, nil
	case who == Other || external:
		return External, nil
	case who == Unsatisfied:
		return Install, nil
	}
	if _, err := kube.NewWriter(c, installation.Manager).DryRun(ctx, &unstructured.Unstructured{}, probe()); err != nil {
		return Install, ctx.Err()
	}
	return External, nil
}

// probe is an object that cert-manager accepts once it works.
func probe() *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"selfSigned": map[string]any{}}}}
	o.SetGroupVersionKind(kindOf("Issuer"))
	o.SetNamespace("default")
	o.SetName("slipway-probe")
	return o
}

// Installed are the steps that install cert-manager.
func Installed(objects []*unstructured.Unstructured, timeout time.Duration) []installation.Step {
	var steps, serves, waits []installation.Step
	for _, o := range component.InstallOrder(objects) {
		steps = append(steps, installation.Step{Verb: installation.Apply, Object: o})
		switch o.GetKind() {
		case "CustomResourceDefinition":
			serves = append(serves, installation.Step{Verb: installation.Serve, Object: o})
		case "Deployment":
			waits = append(waits, installation.Step{Verb: installation.Await, Object: o, Timeout: timeout})
		}
	}
	steps = append(append(steps, serves...), waits...)
	return append(steps, installation.Step{Verb: installation.Accept, Object: probe(), Timeout: timeout, Why: "cert-manager works"})
}

// Manifest is that of the cert-manager that the configuration file names, with its overrides of images and the labels by which
// it is found again.
func Manifest(ctx context.Context, config *configfile.File) ([]*unstructured.Unstructured, error) {
	p := provider.Provider{Name: "cert-manager", Type: provider.Core, URL: config.CertManager.URL}
	source, err := repository.Open(p, selection.New(config).Options)
	if err != nil {
		return nil, err
	}
	data, err := source.Components(ctx, config.CertManager.Version)
	if err != nil {
		return nil, err
	}
	objects, err := input.Documents(data)
	if err != nil {
		return nil, fault.New(fault.Invalid, component.ReasonComponents, "the manifest of cert-manager cannot be read: %v; check its url and version", err).From(err)
	}
	if _, err := component.Images(objects, func(image string) (string, error) { return config.AlterImage("cert-manager", image) }); err != nil {
		return nil, err
	}
	for _, o := range objects {
		labels, annotations := o.GetLabels(), o.GetAnnotations()
		if labels == nil {
			labels = map[string]string{}
		}
		if annotations == nil {
			annotations = map[string]string{}
		}
		labels[provider.ComponentLabel], labels[inventory.CoreLabel] = "", coreCertManager
		annotations[VersionAnnotation] = config.CertManager.Version
		o.SetLabels(labels)
		o.SetAnnotations(annotations)
	}
	return objects, nil
}

// Images of the containers of a manifest.
func Images(objects []*unstructured.Unstructured) []string {
	out, err := component.Images(objects, func(image string) (string, error) { return image, nil })
	if err != nil { // the manifest was read with the same function
		return nil
	}
	return slices.DeleteFunc(out, func(s string) bool { return strings.TrimSpace(s) == "" })
}

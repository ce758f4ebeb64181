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

	"github.com/slipwayhq/slipway/internal/clusterctl/install"
	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/manifest"
)

// Mode selects the implementation of the cert-manager API for the providers that "slipway init" installs.
type Mode string

// The modes of --cert-manager.
const (
	ModeBuiltin   Mode = "builtin"
	ModeInstall   Mode = "install"
	modeExternal  Mode = "external"
	ModeAutomatic Mode = "automatic"
)

// versionAnnotation is the annotation of all cert-manager objects with the version of cert-manager, as clusterctl
// writes it.
const versionAnnotation = "cert-manager.clusterctl.cluster.x-k8s.io/version"

// ParseMode parses the value of --cert-manager. The error is Invalid.
func ParseMode(s string) (Mode, error) {
	all := []Mode{ModeBuiltin, ModeInstall, modeExternal, ModeAutomatic}
	if m := Mode(s); slices.Contains(all, m) {
		return m, nil
	}
	return "", fault.New(fault.Invalid, "Usage", "--cert-manager %s is not valid; use builtin, install, external or automatic", s)
}

// Provisioner is the implementation that satisfies Certificates in a management cluster. [PlanUpgrade] and [Controller]
// behave according to it.
type Provisioner string

// The possible provisioners.
const (
	// unsatisfied means that the cert-manager CRDs are not installed.
	unsatisfied Provisioner = ""
	// Slipway means that the CRDs are Slipway's.
	Slipway Provisioner = "slipway"
	// certManager was installed by init of slipway or clusterctl.
	certManager Provisioner = "cert-manager"
	// otherCertManager is a cert-manager that was not installed by init. Slipway does not modify it.
	otherCertManager Provisioner = "other"
)

// getProvisioner returns the provisioner that satisfies Certificates in the cluster. Every function of this package
// that writes calls it first.
func getProvisioner(ctx context.Context, c client.Reader) (Provisioner, error) {
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	err := c.Get(ctx, client.ObjectKey{Name: certificatesCRD}, crd)
	switch {
	case apierrors.IsNotFound(err):
		return unsatisfied, nil
	case err != nil:
		return unsatisfied, fmt.Errorf("reading the CRD of Certificates: %w", err)
	case crd.GetLabels()[ownLabel] == ownValue && hasOwnSchema(crd):
		return Slipway, nil
	case crd.GetLabels()[provider.CoreLabel] == coreCertManager:
		return certManager, nil
	}
	return otherCertManager, nil
}

// hasOwnSchema reports whether the schema of the CRD is Slipway's.
func hasOwnSchema(crd *unstructured.Unstructured) bool {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	return slices.ContainsFunc(versions, func(v any) bool {
		version, _ := v.(map[string]any)
		description, _, _ := unstructured.NestedString(version, "schema", "openAPIV3Schema", "description")
		return description == ownDescription
	})
}

// Steps returns the steps that a management cluster needs before components with cert-manager objects are installed;
// "slipway init" inserts them into its plan. builtin reports whether [Reconcile] must satisfy the objects.
func Steps(ctx context.Context, c client.Client, mode Mode, config *repository.ConfigFile) (steps []install.Step, builtin bool, err error) {
	who, err := getProvisioner(ctx, c)
	if err != nil {
		return nil, false, err
	}
	if mode == ModeAutomatic {
		if mode, err = automatic(ctx, c, who, config.CertManager.ExternallyProvisioned); err != nil {
			return nil, false, err
		}
	}
	switch {
	case mode == ModeBuiltin && (who == certManager || who == otherCertManager):
		return nil, false, fault.New(fault.Invalid, "CertManagerInstalled", "cert-manager is installed in this cluster; use --cert-manager external")
	case mode == ModeBuiltin:
		return builtinSteps(), true, nil
	case mode == ModeInstall && who == otherCertManager:
		return nil, false, fault.New(fault.Invalid, "CertManagerInstalled", "cert-manager exists in this cluster and was not installed by init; use --cert-manager external")
	case mode == ModeInstall:
		if who == Slipway {
			if err := checkUnused(ctx, c); err != nil {
				return nil, false, err
			}
		}
		objects, err := Manifest(ctx, config)
		return installSteps(objects, config.CertManager.Timeout), false, err
	}
	return nil, false, nil
}

// checkUnused returns an error if Slipway's cert-manager API is in use, because then cert-manager cannot replace it.
func checkUnused(ctx context.Context, c client.Reader) error {
	for _, kind := range []string{"Certificate", "Issuer", "ClusterIssuer"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kindOf(kind + "List"))
		if err := c.List(ctx, list, client.Limit(1)); err != nil {
			return fmt.Errorf("listing %ss: %w", kind, err)
		}
		if len(list.Items) > 0 {
			return fault.New(fault.Invalid, "CertManagerBuiltin",
				"slipway manages the cert-manager objects in this cluster, for example %s %s; use --cert-manager builtin, or delete these objects before you install cert-manager",
				kind, client.ObjectKeyFromObject(&list.Items[0]))
		}
	}
	return nil
}

// builtinSteps returns the steps that install Slipway's CRDs. [Controller.InstallCRDs] executes them, too.
func builtinSteps() []install.Step {
	var apply, serve []install.Step
	for _, o := range ownCRDs() {
		apply = append(apply, install.Step{Verb: install.Apply, Object: o, Why: "slipway issues certificates instead of cert-manager"})
		serve = append(serve, install.Step{Verb: install.Serve, Object: o})
	}
	return append(apply, serve...)
}

// automatic returns the mode to use if none is configured. If a cert-manager installed by init does not respond, it is
// installed again, because an earlier command may have been interrupted.
func automatic(ctx context.Context, c client.Client, who Provisioner, external bool) (Mode, error) {
	switch {
	case who == Slipway:
		return ModeBuiltin, nil
	case who == otherCertManager || external:
		return modeExternal, nil
	case who == unsatisfied:
		return ModeInstall, nil
	}
	if _, err := kube.NewWriter(c, install.Manager).DryRun(ctx, &unstructured.Unstructured{}, probe()); err != nil {
		return ModeInstall, ctx.Err()
	}
	return modeExternal, nil
}

// probe returns an object that cert-manager accepts when it is ready.
func probe() *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"selfSigned": map[string]any{}}}}
	o.SetGroupVersionKind(kindOf("Issuer"))
	o.SetNamespace("default")
	o.SetName("slipway-probe")
	return o
}

// installSteps returns the steps that install cert-manager. [PlanUpgrade] plans an upgrade of cert-manager with them.
func installSteps(objects []*unstructured.Unstructured, timeout time.Duration) []install.Step {
	var steps, serves, waits []install.Step
	for _, o := range repository.InstallOrder(objects) {
		steps = append(steps, install.Step{Verb: install.Apply, Object: o})
		switch o.GetKind() {
		case "CustomResourceDefinition":
			serves = append(serves, install.Step{Verb: install.Serve, Object: o})
		case "Deployment":
			waits = append(waits, install.Step{Verb: install.Await, Object: o, Timeout: timeout})
		}
	}
	steps = append(append(steps, serves...), waits...)
	return append(steps, install.Step{Verb: install.Accept, Object: probe(), Timeout: timeout, Why: "cert-manager is ready"})
}

// Manifest returns the manifest of the configured cert-manager, with image overrides applied and with the labels that
// identify its objects. The installation and the upgrade of cert-manager call it, and `slipway init list-images`.
func Manifest(ctx context.Context, config *repository.ConfigFile) ([]*unstructured.Unstructured, error) {
	p := provider.Provider{Name: "cert-manager", Type: provider.Core, URL: config.CertManager.URL}
	source, err := repository.Open(p, install.NewProviderLoader(config).Options)
	if err != nil {
		return nil, err
	}
	data, err := source.Components(ctx, config.CertManager.Version)
	if err != nil {
		return nil, err
	}
	objects, err := manifest.Objects(data)
	if err != nil {
		return nil, fault.New(fault.Invalid, repository.ReasonComponents, "the cert-manager manifest is invalid: %v; check its url and version", err).From(err)
	}
	if _, err := repository.Images(objects, func(image string) (string, error) { return config.AlterImage("cert-manager", image) }); err != nil {
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
		labels[provider.ComponentLabel], labels[provider.CoreLabel] = "", coreCertManager
		annotations[versionAnnotation] = config.CertManager.Version
		o.SetLabels(labels)
		o.SetAnnotations(annotations)
	}
	return objects, nil
}

// Images returns the container images of a manifest. `slipway init list-images` calls it.
func Images(objects []*unstructured.Unstructured) []string {
	out, err := repository.Images(objects, func(image string) (string, error) { return image, nil })
	if err != nil { // the manifest was already read with this function
		return nil
	}
	return slices.DeleteFunc(out, func(s string) bool { return strings.TrimSpace(s) == "" })
}

package crds

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/providerset"
)

const (
	// HashAnnotation is the hash of the content that was last applied.
	HashAnnotation = "slipway.dev/content-hash"

	// writerName is the field manager of Install.
	writerName = "crds"

	// pollInterval is the interval between checks of a CRD that is not served yet.
	pollInterval = 50 * time.Millisecond

	// parallelWrites limits concurrent writes of CRDs.
	parallelWrites = 4
)

// Options configures the installation of CRDs.
type Options struct {
	// ConversionWebhook is the webhook that converts objects between versions; package webhook provides one.
	// If nil, only apiVersion changes in a conversion, which is for tests only.
	ConversionWebhook *apiextensionsv1.WebhookClientConfig

	// Sets are the providers whose CRDs are installed. Nil means all.
	Sets []providerset.Set
}

func (o Options) sets() []providerset.Set {
	if o.Sets == nil {
		return providerset.All()
	}
	return o.Sets
}

// Install writes the CRDs to the cluster and waits until they are established. Package webhook calls it before the
// manager starts, and after its CA has changed. A CRD with the content that was last applied is neither written nor
// waited for, because the API server has established it or will do so when it starts. A CRD of a provider without
// controllers in this manager is not taken from another implementation; see [foreignConverter]. The client c needs
// apiextensions.k8s.io/v1 in its scheme and must not read from a cache. Install returns the context's error if the CRDs
// are not established in time.
func Install(ctx context.Context, c client.Client, opts Options) error {
	list, err := Of(opts)
	if err != nil {
		return err
	}
	if list, err = wanted(ctx, c, list, opts); err != nil {
		return err
	}
	applied, err := appliedHashes(ctx, c, list)
	if err != nil {
		return err
	}
	written, err := applyAll(ctx, kube.NewWriter(c, writerName), list, applied)
	if err != nil {
		return err
	}
	for _, name := range written {
		if err := awaitEstablished(ctx, c, name); err != nil {
			return err
		}
	}
	return nil
}

// Redirect changes the conversion address of the CRDs of some providers, if the manager that converted them no longer
// responds. It leaves everything else unchanged, because the CRDs may be of a newer version. It removes the content
// hash, so that the next installation writes the CRDs. Package webhook calls it.
func Redirect(ctx context.Context, c client.Client, opts Options) error {
	list, err := Of(opts)
	if err != nil {
		return err
	}
	if list, err = wanted(ctx, c, list, opts); err != nil {
		return err
	}
	w := kube.NewWriter(c, writerName)
	for _, crd := range list {
		live := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(crd), live); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading CRD %s: %w", crd.Name, err)
		}
		if live.Spec.Conversion == nil || live.Spec.Conversion.Webhook == nil {
			continue
		}
		err := w.Patch(ctx, live, func(o client.Object) {
			o.(*apiextensionsv1.CustomResourceDefinition).Spec.Conversion.Webhook.ClientConfig = opts.ConversionWebhook.DeepCopy()
			delete(o.GetAnnotations(), HashAnnotation)
		})
		if err != nil {
			return fmt.Errorf("redirecting the conversion of CRD %s: %w", crd.Name, err)
		}
	}
	return nil
}

// wanted returns the CRDs of the enabled providers, without those that another implementation manages.
func wanted(
	ctx context.Context, c client.Client, list []*apiextensionsv1.CustomResourceDefinition, opts Options,
) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var out []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range list {
		for _, set := range opts.sets() {
			if !set.Contains(crd.Name) {
				continue
			}
			elsewhere := ""
			if len(set.Controllers) == 0 {
				var err error
				if elsewhere, err = foreignConverter(ctx, c, crd.Name, opts.ConversionWebhook); err != nil {
					return nil, err
				}
			}
			if elsewhere == "" {
				out = append(out, crd)
				continue
			}
			ctrl.LoggerFrom(ctx).Info("skipping a CRD whose objects another manager converts", "crd", crd.Name, "service", elsewhere)
		}
	}
	return out, nil
}

// foreignConverter returns the Service of another manager that converts the objects of a CRD, or an empty
// string. For kinds without controllers here, the CRD of another manager is not changed, because that
// manager's controllers depend on it.
func foreignConverter(ctx context.Context, c client.Client, name string, own *apiextensionsv1.WebhookClientConfig) (string, error) {
	if own == nil {
		return "", nil
	}
	live := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(ctx, client.ObjectKey{Name: name}, live); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	if live.Spec.Conversion == nil || live.Spec.Conversion.Webhook == nil || live.Spec.Conversion.Webhook.ClientConfig == nil {
		return "", nil
	}
	service := live.Spec.Conversion.Webhook.ClientConfig.Service
	if service == nil || own.Service != nil && service.Namespace == own.Service.Namespace && service.Name == own.Service.Name {
		return "", nil
	}
	return service.Namespace + "/" + service.Name, nil
}

// appliedHashes returns the hash annotations of the existing CRDs by name. It waits for CRDs in the list that
// are being deleted.
func appliedHashes(ctx context.Context, c client.Client, wanted []*apiextensionsv1.CustomResourceDefinition) (map[string]string, error) {
	found := &metav1.PartialObjectMetadataList{}
	found.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	if err := c.List(ctx, found); err != nil {
		return nil, fmt.Errorf("listing the CRDs in the cluster: %w", err)
	}
	hashes := make(map[string]string, len(found.Items))
	for _, crd := range found.Items {
		hashes[crd.Name] = crd.Annotations[HashAnnotation]
		if crd.DeletionTimestamp.IsZero() || !slices.ContainsFunc(wanted, func(w *apiextensionsv1.CustomResourceDefinition) bool { return w.Name == crd.Name }) {
			continue
		}
		gone, err := awaitDeleted(ctx, c, crd.Name)
		if err != nil {
			return nil, err
		}
		if gone {
			delete(hashes, crd.Name)
		}
	}
	return hashes, nil
}

// applyAll writes the CRDs whose content differs from the applied one, and returns their names.
func applyAll(ctx context.Context, w *kube.Writer, list []*apiextensionsv1.CustomResourceDefinition,
	applied map[string]string) ([]string, error) {
	var written []string
	group, ctx := fault.NewGroup(ctx)
	group.SetLimit(parallelWrites)
	for _, crd := range list {
		object, hash, err := Hashed(crd, apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		if err != nil {
			return nil, errors.Join(err, group.Wait())
		}
		if hash == applied[crd.Name] {
			continue
		}
		written = append(written, crd.Name)
		group.Go(func() error { return w.Apply(ctx, nil, object) })
	}
	return written, group.Wait()
}

// Hashed returns the content of an object to apply, with its hash in the annotation [HashAnnotation], and the hash.
// Package webhook applies its configurations in the same way.
func Hashed(o client.Object, kind schema.GroupVersionKind) (*unstructured.Unstructured, string, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, "", fmt.Errorf("converting %s %s: %w", kind.Kind, o.GetName(), err)
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(kind)
	unstructured.RemoveNestedField(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	data, err := json.Marshal(content)
	if err != nil {
		return nil, "", fmt.Errorf("converting %s %s: %w", kind.Kind, o.GetName(), err)
	}
	sum := sha256.Sum256(data)
	hash := hex.EncodeToString(sum[:16])
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[HashAnnotation] = hash
	object.SetAnnotations(annotations)
	return object, hash, nil
}

// awaitEstablished waits until the API server serves the CRD.
func awaitEstablished(ctx context.Context, c client.Client, name string) error {
	seen := ""
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
			return false, err
		}
		for _, condition := range crd.Status.Conditions {
			switch {
			case condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue:
				return true, nil
			case condition.Type == apiextensionsv1.NamesAccepted && condition.Status == apiextensionsv1.ConditionFalse:
				seen = condition.Message
			}
		}
		return false, nil
	})
	if err == nil {
		return nil
	}
	if seen != "" {
		return fmt.Errorf("waiting for CRD %s to be served: its names are not accepted (%s): %w", name, seen, err)
	}
	return fmt.Errorf("waiting for CRD %s to be served: %w", name, err)
}

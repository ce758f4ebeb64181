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

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/providerset"
)

const (
	// hashAnnotation stands for the content of a CRD as it was last applied by Install.
	hashAnnotation = "slipway.dev/content-hash"

	// writerName names the field manager that owns what Install writes.
	writerName = "crds"

	// pollInterval is the time between two looks at a CRD that is not served yet.
	pollInterval = 50 * time.Millisecond

	// parallelWrites bounds how many CRDs are written at once.
	parallelWrites = 4
)

// Options say how CRDs are installed.
type Options struct {
	// ConversionWebhook tells the API server where objects are converted between versions; see the package webhook
	// for one that fits. Nil: objects are not converted, only relabelled, which is for tests only.
	ConversionWebhook *apiextensionsv1.WebhookClientConfig

	// Sets are the providers whose CRDs are installed; nil: all.
	Sets []providerset.Set
}

func (o Options) sets() []providerset.Set {
	if o.Sets == nil {
		return providerset.All()
	}
	return o.Sets
}

// Install writes the CRDs to the cluster behind c and waits until they are established. A CRD whose content is the one
// last applied is not written, and not waited for: the API server established it then, or does so when it starts. Nor is
// one that a provider without controllers here would take from another implementation; see [convertedElsewhere]. c needs apiextensions.k8s.io/v1 in its scheme, and must read the API server, not a cache. It ends with the context's
// error when the cluster does not accept the names in time.
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

// Redirect has the objects of the CRDs of some providers converted at another address, and changes nothing else of them: they may be
// those of a newer version. The hash is removed, so that who installs them next writes them.
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
			delete(o.GetAnnotations(), hashAnnotation)
		})
		if err != nil {
			return fmt.Errorf("redirecting the conversion of CRD %s: %w", crd.Name, err)
		}
	}
	return nil
}

// wanted returns those of the CRDs, each of a provider that runs, without those that another implementation keeps.
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
				if elsewhere, err = convertedElsewhere(ctx, c, crd.Name, opts.ConversionWebhook); err != nil {
					return nil, err
				}
			}
			if elsewhere == "" {
				out = append(out, crd)
				continue
			}
			ctrl.LoggerFrom(ctx).Info("CRD is left to the manager that converts its objects", "crd", crd.Name, "service", elsewhere)
		}
	}
	return out, nil
}

// convertedElsewhere returns the Service that converts the objects of a CRD, empty if there is none but ours. Of kinds that
// nothing here reconciles, another manager's CRD stays as that manager wants it: its controllers read what it stores.
func convertedElsewhere(ctx context.Context, c client.Client, name string, own *apiextensionsv1.WebhookClientConfig) (string, error) {
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

// appliedHashes returns the hash annotation of those of the CRDs that are in the cluster, by name, when none of them is on its way out.
func appliedHashes(ctx context.Context, c client.Client, wanted []*apiextensionsv1.CustomResourceDefinition) (map[string]string, error) {
	found := &metav1.PartialObjectMetadataList{}
	found.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	if err := c.List(ctx, found); err != nil {
		return nil, fmt.Errorf("listing the CRDs in the cluster: %w", err)
	}
	hashes := make(map[string]string, len(found.Items))
	for _, crd := range found.Items {
		hashes[crd.Name] = crd.Annotations[hashAnnotation]
		if crd.DeletionTimestamp.IsZero() || !slices.ContainsFunc(wanted, func(w *apiextensionsv1.CustomResourceDefinition) bool { return w.Name == crd.Name }) {
			continue
		}
		gone, err := awaitGone(ctx, c, crd.Name)
		if err != nil {
			return nil, err
		}
		if gone {
			delete(hashes, crd.Name)
		}
	}
	return hashes, nil
}

// applyAll writes the CRDs that are not in the cluster with the same content from before, and returns their names.
func applyAll(ctx context.Context, w *kube.Writer, list []*apiextensionsv1.CustomResourceDefinition,
	applied map[string]string) ([]string, error) {
	var written []string
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelWrites)
	for _, crd := range list {
		object, hash, err := desired(crd)
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

// desired returns what is applied for a CRD, its hash included.
func desired(crd *apiextensionsv1.CustomResourceDefinition) (*unstructured.Unstructured, string, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	if err != nil {
		return nil, "", fmt.Errorf("converting CRD %s: %w", crd.Name, err)
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	unstructured.RemoveNestedField(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	data, err := json.Marshal(content)
	if err != nil {
		return nil, "", fmt.Errorf("converting CRD %s: %w", crd.Name, err)
	}
	sum := sha256.Sum256(data)
	hash := hex.EncodeToString(sum[:16])
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[hashAnnotation] = hash
	object.SetAnnotations(annotations)
	return object, hash, nil
}

// awaitEstablished returns when the API server serves the CRD.
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

package crds

import (
	"compress/gzip"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/slipwayhq/slipway/internal/providerset"
)

//go:embed all:generated
var generated embed.FS

// errNotGenerated is returned by a binary that was built without the generated CRDs.
var errNotGenerated = errors.New("this binary was built without its CRDs: run `make generate build`")

// All returns every CRD, with labels, sorted by name, without conversion. The caller owns the result. It fails only if
// the binary was built without `make generate`. `slipway plan`, the webhooks and the manager (for the limits of each
// status) read the schemas of its result.
func All() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	file, err := generated.Open("generated/crds.json.gz")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNotGenerated
	}
	if err != nil {
		return nil, fmt.Errorf("opening the embedded CRDs: %w", err)
	}
	defer file.Close()
	reader, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("unpacking the embedded CRDs: %w", err)
	}
	var list []*apiextensionsv1.CustomResourceDefinition
	if err := json.NewDecoder(reader).Decode(&list); err != nil {
		return nil, fmt.Errorf("reading the embedded CRDs: %w", err)
	}
	for _, crd := range list {
		if crd.Labels == nil {
			crd.Labels = map[string]string{}
		}
		maps.Copy(crd.Labels, labelsOf(crd))
		crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	}
	return list, nil
}

// Of returns the CRDs of the providers with their conversion, as [Install] writes them to an empty cluster and as the
// manifests of a release contain them.
func Of(opts Options) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	list, err := All()
	if err != nil {
		return nil, err
	}
	names := providerset.CRDs(opts.sets())
	list = slices.DeleteFunc(list, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return !slices.Contains(names, crd.Name) })
	for _, crd := range list {
		withConversion(crd, opts.ConversionWebhook)
	}
	return list, nil
}

// withConversion configures the conversion webhook of a CRD with several versions. Without a webhook, the
// strategy remains "None", which suffices for tests that only use the stored version.
func withConversion(crd *apiextensionsv1.CustomResourceDefinition, webhook *apiextensionsv1.WebhookClientConfig) {
	if webhook == nil || !hasConversion(crd) {
		return
	}
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             webhook.DeepCopy(),
			ConversionReviewVersions: []string{"v1"},
		},
	}
}

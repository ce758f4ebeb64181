package webhook

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/conversion"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// readTimeout limits the read of a CRD, because the API server waits for the conversion.
const readTimeout = 5 * time.Second

// CRDVersions returns a function for the conversion of references, which have a version only in older API versions: it
// returns the API version of the newest contract in the labels of a CRD. The reader should be the manager's cache,
// which already contains the metadata of CRDs. The version is empty if the CRD does not exist or cannot be read. The
// manager passes it in [Options].
func CRDVersions(reader client.Reader) conversion.VersionOf {
	return func(kind schema.GroupKind) string {
		ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
		defer cancel()
		crd := &metav1.PartialObjectMetadata{}
		crd.SetGroupVersionKind(kube.CRDKind())
		name := contract.CRDName(kind.Group, kind.Kind)
		if err := reader.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
			return ""
		}
		_, version, err := contract.Resolve(name, crd.Labels)
		if err != nil {
			return ""
		}
		return version
	}
}

package clusterresourceset

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/reconciler"
)

// newSources returns a cache for the sources of ClusterResourceSets: the metadata of ConfigMaps, and the metadata of
// Secrets with the type for resource sets. The controller reads and watches the sources with it, because the manager's
// cache contains only ConfigMaps and Secrets that belong to a cluster. It must not contain their data: most of them
// have nothing to do with Slipway. [Add] calls it once.
func newSources(s reconciler.Setup, settings Settings) (cache.Cache, error) {
	options := cache.Options{
		HTTPClient: s.Manager.GetHTTPClient(), Scheme: s.Manager.GetScheme(), Mapper: s.Manager.GetRESTMapper(),
		DefaultTransform: identityOnly,
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Field: fields.OneTermEqualSelector("type", string(addonsv1.ClusterResourceSetSecretType))},
		},
	}
	for _, namespace := range settings.Namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return cache.New(s.Manager.GetConfig(), options)
}

// identityOnly reduces metadata to identity, version, deletion timestamp and owners.
func identityOnly(in any) (any, error) {
	meta, ok := in.(*metav1.PartialObjectMetadata)
	if !ok {
		return in, nil
	}
	meta.ObjectMeta = metav1.ObjectMeta{
		Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion,
		OwnerReferences: meta.OwnerReferences, DeletionTimestamp: meta.DeletionTimestamp,
	}
	return meta, nil
}

// metadataOf returns an empty metadata object for a kind of source. [Add] watches the sources with it.
func metadataOf(kind addonsv1.ClusterResourceSetResourceKind) *metav1.PartialObjectMetadata {
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(kind)))
	return meta
}

// remembered limits the number of cached hashes.
const remembered = 1024

// hashes caches the hash of each content by the resource version of its source, so that unchanged contents are not
// read again. The zero value is ready to use. observe reads them, and the read of a content stores one.
type hashes struct {
	mu sync.Mutex
	of map[version]string
}

type version struct {
	uid      types.UID
	resource string
}

func versionOf(o client.Object) version {
	return version{uid: o.GetUID(), resource: o.GetResourceVersion()}
}

// get returns the hash of the content, or an empty string if it is unknown.
func (h *hashes) get(o client.Object) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.of[versionOf(o)]
}

// put stores the hash of a content that was read (observe.go).
func (h *hashes) put(o client.Object, hash string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil || len(h.of) >= remembered {
		h.of = map[version]string{}
	}
	h.of[versionOf(o)] = hash
}

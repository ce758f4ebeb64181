package simulated

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"go.etcd.io/etcd/client/v3/kubernetes"
)

// prefix is the prefix of all object keys, as in Kubernetes. Existing state files contain it.
const prefix = "/registry"

// options configures the storage of objects for the api groups: encoded as in etcd, in the keyspace of the request. The
// encoding is the one of Kubernetes, so that later versions can read the files.
type options struct {
	versions *serverstorage.DefaultStorageFactory
	client   *kubernetes.Client
}

func (o options) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	config, err := o.versions.NewConfig(resource, example)
	if err != nil {
		return generic.RESTOptions{}, err
	}
	return generic.RESTOptions{
		StorageConfig: config, Decorator: o.decorator(), DeleteCollectionWorkers: 1, ResourcePrefix: o.versions.ResourcePrefix(resource),
	}, nil
}

// decorator creates the storage of each resource.
func (o options) decorator() generic.StorageDecorator {
	return func(
		config *storagebackend.ConfigForResource, resourcePrefix string, _ func(runtime.Object) (string, error),
		newObject, newList func() runtime.Object, _ storage.AttrFunc, _ storage.IndexerFuncs, _ *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		versioner := storage.APIObjectVersioner{}
		s, err := etcd3.New(
			o.client, nil, config.Codec, newObject, newList, prefix, resourcePrefix, config.GroupResource,
			identity.NewEncryptCheckTransformer(), etcd3.NewDefaultLeaseManagerConfig(),
			etcd3.NewDefaultDecoder(config.Codec, versioner), versioner)
		return s, func() {}, err
	}
}

// newVersions configures the storage version and encoding of each resource. [newAPI] calls it.
func newVersions(resources *serverstorage.ResourceConfig) *serverstorage.DefaultStorageFactory {
	return serverstorage.NewDefaultStorageFactory(
		storagebackend.Config{Prefix: prefix}, runtime.ContentTypeProtobuf, legacyscheme.Codecs,
		serverstorage.NewDefaultResourceEncodingConfig(legacyscheme.Scheme), resources, nil)
}

package components

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// bookmark makes watches that are served from etcd send bookmarks, like watches that are served from a watch cache. It
// is called for an API server without watch cache, as in the management cluster. A client resumes a watch at the last
// resource version that it received. Without bookmarks, this is the last change of a watched object, which may be long
// ago. etcd then has to decode all later changes of all kinds, or has compacted them, and the client lists all objects
// again. The imported APIs must exist in several Kubernetes versions (doc.go). build (apiserver.go) calls it.
func bookmark(config *app.Config) {
	for _, getter := range []*generic.RESTOptionsGetter{
		&config.KubeAPIs.ControlPlane.Generic.RESTOptionsGetter,
		&config.ApiExtensions.GenericConfig.RESTOptionsGetter,
		&config.ApiExtensions.ExtraConfig.CRDRESTOptionsGetter,
		&config.Aggregator.GenericConfig.RESTOptionsGetter,
	} {
		*getter = bookmarkedOptions{*getter}
	}
}

// cached reports whether lists and watches of a resource are served from a watch cache although the server
// has none by default. Users who can write in a namespace can create many of these objects, and users who can
// read can list them. From etcd, each list of 54 MB takes 590 MB while it is read, decoded and encoded. From
// a cache, the objects are shared and encoded one by one.
func cached(resource schema.GroupResource) bool {
	return resource.Group == "" && (resource.Resource == "secrets" || resource.Resource == "configmaps")
}

// bookmarkedOptions are storage options for watches with bookmarks.
type bookmarkedOptions struct{ generic.RESTOptionsGetter }

func (b bookmarkedOptions) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := b.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return options, err
	}
	if cached(resource) {
		options.Decorator = genericregistry.StorageWithCacher()
		return options, nil
	}
	undecorated := options.Decorator
	options.Decorator = func(
		config *storagebackend.ConfigForResource, prefix string, key func(runtime.Object) (string, error), one, list func() runtime.Object,
		attributes storage.AttrFunc, trigger storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		made, destroy, err := undecorated(config, prefix, key, one, list, attributes, trigger, indexers)
		if err != nil || one == nil { // a bookmark is an empty object of the kind
			return made, destroy, err
		}
		return bookmarked{made}, destroy, nil
	}
	return options, nil
}

// bookmarked is a storage that sends bookmarks to watches that request them.
type bookmarked struct{ storage.Interface }

func (b bookmarked) Watch(ctx context.Context, key string, options storage.ListOptions) (watch.Interface, error) {
	options.ProgressNotify = options.Predicate.AllowWatchBookmarks
	return b.Interface.Watch(ctx, key, options)
}

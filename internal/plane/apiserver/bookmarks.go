package apiserver

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

// bookmark lets watches that are served from etcd send bookmarks, as those from a watch cache do. A client that watches again says
// up to where it knows all. Without bookmarks that is the last change of an object that it watches, however long ago, and etcd
// decodes all that was written since, of every kind, or has forgotten it, and the client lists everything again.
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

// cached reports whether lists and watches of a resource are served from a cache although the server has none by default. Anyone who may
// write in a namespace fills it with these kinds, and anyone who may read there lists them: from etcd, each list of 54 MB takes 590 MB
// while it is read, decoded and encoded; from a cache, the objects are shared and written one by one.
func cached(resource schema.GroupResource) bool {
	return resource.Group == "" && (resource.Resource == "secrets" || resource.Resource == "configmaps")
}

// bookmarkedOptions are options of resources whose watches send bookmarks.
type bookmarkedOptions struct{ generic.RESTOptionsGetter }

// GetRESTOptions implements generic.RESTOptionsGetter.
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
		if err != nil || one == nil { // a bookmark is an empty object
			return made, destroy, err
		}
		return bookmarked{made}, destroy, nil
	}
	return options, nil
}

// bookmarked is storage whose watches send bookmarks to those that want them.
type bookmarked struct{ storage.Interface }

// Watch implements storage.Interface.
func (b bookmarked) Watch(ctx context.Context, key string, options storage.ListOptions) (watch.Interface, error) {
	options.ProgressNotify = options.Predicate.AllowWatchBookmarks
	return b.Interface.Watch(ctx, key, options)
}

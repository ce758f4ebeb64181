package simulated

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"          // registers types in the scheme
	_ "k8s.io/kubernetes/pkg/apis/authorization/install" // registers types in the scheme
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"   // registers types in the scheme
	_ "k8s.io/kubernetes/pkg/apis/batch/install"         // registers types in the scheme
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"  // registers types in the scheme
	_ "k8s.io/kubernetes/pkg/apis/core/install"          // registers types in the scheme
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"     // registers types in the scheme
	_ "k8s.io/kubernetes/pkg/apis/events/install"        // registers types in the scheme
	_ "k8s.io/kubernetes/pkg/apis/networking/install"    // registers types in the scheme
	_ "k8s.io/kubernetes/pkg/apis/policy/install"        // registers types in the scheme
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"          // registers types in the scheme
	_ "k8s.io/kubernetes/pkg/apis/resource/install"      // registers types in the scheme
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"    // registers types in the scheme
	_ "k8s.io/kubernetes/pkg/apis/storage/install"       // registers types in the scheme
	kubeletclient "k8s.io/kubernetes/pkg/kubelet/client"
	appsrest "k8s.io/kubernetes/pkg/registry/apps/rest"
	authorizationrest "k8s.io/kubernetes/pkg/registry/authorization/rest"
	batchrest "k8s.io/kubernetes/pkg/registry/batch/rest"
	coordinationrest "k8s.io/kubernetes/pkg/registry/coordination/rest"
	endpointsstore "k8s.io/kubernetes/pkg/registry/core/endpoint/storage"
	limitrangestore "k8s.io/kubernetes/pkg/registry/core/limitrange/storage"
	nodestore "k8s.io/kubernetes/pkg/registry/core/node/storage"
	pvstore "k8s.io/kubernetes/pkg/registry/core/persistentvolume/storage"
	pvcstore "k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim/storage"
	podstore "k8s.io/kubernetes/pkg/registry/core/pod/storage"
	podtemplatestore "k8s.io/kubernetes/pkg/registry/core/podtemplate/storage"
	controllerstore "k8s.io/kubernetes/pkg/registry/core/replicationcontroller/storage"
	corerest "k8s.io/kubernetes/pkg/registry/core/rest"
	servicestore "k8s.io/kubernetes/pkg/registry/core/service/storage"
	discoveryrest "k8s.io/kubernetes/pkg/registry/discovery/rest"
	eventsrest "k8s.io/kubernetes/pkg/registry/events/rest"
	networkingrest "k8s.io/kubernetes/pkg/registry/networking/rest"
	policyrest "k8s.io/kubernetes/pkg/registry/policy/rest"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	resourcerest "k8s.io/kubernetes/pkg/registry/resource/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"
	storagerest "k8s.io/kubernetes/pkg/registry/storage/rest"
)

// eventTTL is the lifetime of Events, as in kube-apiserver.
const eventTTL = time.Hour

// resources returns the served api versions. A further group needs its provider in [parts.groups], too.
func resources() *serverstorage.ResourceConfig {
	config := serverstorage.NewResourceConfig()
	config.EnableVersions(
		corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, authorizationv1.SchemeGroupVersion, batchv1.SchemeGroupVersion,
		coordinationv1.SchemeGroupVersion, discoveryv1.SchemeGroupVersion, eventsv1.SchemeGroupVersion,
		networkingv1.SchemeGroupVersion, policyv1.SchemeGroupVersion, rbacv1.SchemeGroupVersion,
		resourcev1.SchemeGroupVersion, schedulingv1.SchemeGroupVersion, storagev1.SchemeGroupVersion,
	)
	return config
}

// provider creates the storage of an api group.
type provider interface {
	NewRESTStorage(serverstorage.APIResourceConfigSource, generic.RESTOptionsGetter) (genericapiserver.APIGroupInfo, error)
}

// parts contains the dependencies of the api groups, whose storage it creates for [newAPI] with the packages of
// kube-apiserver.
type parts struct {
	api       *api
	resources *serverstorage.ResourceConfig
	options   generic.RESTOptionsGetter
	access    authorizer.Authorizer
	rules     authorizer.RuleResolver
}

// groups creates all groups except the core group. [newAPI] calls it and core.
func (p parts) groups() ([]*genericapiserver.APIGroupInfo, error) {
	var out []*genericapiserver.APIGroupInfo
	for _, provider := range []provider{
		appsrest.StorageProvider{},
		authorizationrest.RESTStorageProvider{Authorizer: p.access, RuleResolver: p.rules},
		batchrest.RESTStorageProvider{},
		coordinationrest.RESTStorageProvider{},
		discoveryrest.StorageProvider{},
		eventsrest.RESTStorageProvider{TTL: eventTTL},
		networkingrest.RESTStorageProvider{},
		policyrest.RESTStorageProvider{},
		rbacrest.RESTStorageProvider{Authorizer: p.access},
		resourcerest.RESTStorageProvider{NamespaceClient: p.api.client.CoreV1().Namespaces(), Authorizer: p.access},
		schedulingrest.RESTStorageProvider{},
		storagerest.RESTStorageProvider{},
	} {
		group, err := provider.NewRESTStorage(p.resources, p.options)
		if err != nil {
			return nil, fmt.Errorf("preparing the groups of %T: %w", provider, err)
		}
		out = append(out, &group)
	}
	return out, nil
}

// core creates the core group. There are no kubelets, so the subresources that need one are omitted: log, exec, attach
// and proxy. [forwards] implements portforward.
func (p parts) core() (*genericapiserver.APIGroupInfo, error) {
	config := corerest.GenericConfig{EventTTL: eventTTL}
	group, err := config.NewRESTStorage(p.resources, p.options)
	if err != nil {
		return nil, fmt.Errorf("preparing the core group: %w", err)
	}
	stores := group.VersionedResourcesStorageMap["v1"]
	for _, add := range []func(map[string]rest.Storage) error{p.machines, p.storedOnly, p.volumes, p.services} {
		if err := add(stores); err != nil {
			return nil, fmt.Errorf("preparing the core group: %w", err)
		}
	}
	return &group, nil
}

// machines adds nodes and pods.
func (p parts) machines(stores map[string]rest.Storage) error {
	nodes, err := nodestore.NewStorage(p.options, kubeletclient.KubeletClientConfig{}, nil)
	if err != nil {
		return err
	}
	pods, err := podstore.NewStorage(p.options, nodes.KubeletConnectionInfo, nil, nil, p.access)
	if err != nil {
		return err
	}
	stores["nodes"], stores["nodes/status"] = nodes.Node, nodes.Status
	stores["pods"], stores["pods/status"], stores["pods/binding"] = pods.Pod, pods.Status, pods.Binding
	stores["pods/eviction"], stores["pods/ephemeralcontainers"] = evictions{pods.Eviction, p.api, p}, pods.EphemeralContainers
	stores["pods/portforward"] = forwards{pods.Pod}
	stores["bindings"] = pods.LegacyBinding
	return nil
}

// storedOnly adds resources that are only stored.
func (p parts) storedOnly(stores map[string]rest.Storage) error {
	templates, err := podtemplatestore.NewREST(p.options)
	if err != nil {
		return err
	}
	limits, err := limitrangestore.NewREST(p.options)
	if err != nil {
		return err
	}
	controllers, err := controllerstore.NewStorage(p.options)
	if err != nil {
		return err
	}
	stores["podtemplates"], stores["limitranges"] = templates, limits
	stores["replicationcontrollers"], stores["replicationcontrollers/status"] = controllers.Controller, controllers.Status
	return nil
}

// volumes adds volumes and claims. Nothing binds them.
func (p parts) volumes(stores map[string]rest.Storage) error {
	volumes, volumesStatus, err := pvstore.NewREST(p.options)
	if err != nil {
		return err
	}
	claims, claimsStatus, err := pvcstore.NewREST(p.options)
	if err != nil {
		return err
	}
	stores["persistentvolumes"], stores["persistentvolumes/status"] = volumes, volumesStatus
	stores["persistentvolumeclaims"], stores["persistentvolumeclaims/status"] = claims, claimsStatus
	return nil
}

// services adds services and endpoints.
func (p parts) services(stores map[string]rest.Storage) error {
	endpoints, err := endpointsstore.NewREST(p.options)
	if err != nil {
		return err
	}
	pods, ok := stores["pods"].(*podstore.REST)
	if !ok {
		return fmt.Errorf("the store of pods is a %T", stores["pods"])
	}
	ports, err := newPorts()
	if err != nil {
		return err
	}
	services, status, _, err := servicestore.NewREST(p.options, family, newAddresses(), ports, endpoints, pods, nil)
	if err != nil {
		return err
	}
	stores["endpoints"], stores["services"], stores["services/status"] = endpoints, services, status
	return nil
}

package provider

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/clusterctl/install"
)

// newClient returns the client of the provider commands: without client-side limits, because the API server limits
// requests itself and an installation creates hundreds of objects, and with the kinds that these commands read. init,
// delete, "init list-images", "upgrade plan" and "upgrade apply" call it.
func newClient(c *management.Connection) (client.WithWatch, error) {
	scheme, err := management.Scheme()
	if err != nil {
		return nil, err
	}
	for _, add := range []func() error{
		func() error { return appsv1.AddToScheme(scheme) },
		func() error { return admissionregistrationv1.AddToScheme(scheme) },
		func() error { return apiextensionsv1.AddToScheme(scheme) },
	} {
		if err := add(); err != nil {
			return nil, err
		}
	}
	config := rest.CopyConfig(c.Config)
	config.QPS, config.Burst = -1, 0
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}

// readKinds returns the kinds of a management cluster, in which the installed objects of providers are found. delete,
// "upgrade plan" and "upgrade apply" call it.
func readKinds(c *management.Connection) ([]schema.GroupVersionKind, error) {
	d, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	return install.Kinds(d)
}

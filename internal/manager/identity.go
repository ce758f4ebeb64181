package manager

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// providerManager is the manager for the controllers of one provider with a separate identity, as in `slipway up`. It
// shares the caches and the lifecycle of the process, while live reads, writes and Events use the provider's identity.
type providerManager struct {
	manager.Manager
	own cluster.Cluster
}

// newMember returns a manager for controllers that connect to the management cluster with access. newParts calls it for
// each provider that has an entry in [Config].Identities.
func newMember(mgr manager.Manager, access *rest.Config) (manager.Manager, error) {
	own, err := cluster.New(access, func(o *cluster.Options) {
		o.Scheme, o.Logger, o.Client = mgr.GetScheme(), mgr.GetLogger(), clientOptions()
		o.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mgr.GetRESTMapper(), nil }
		o.NewCache = func(*rest.Config, cache.Options) (cache.Cache, error) { return started{mgr.GetCache()}, nil }
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to the management cluster: %w", err)
	}
	return providerManager{Manager: mgr, own: own}, mgr.Add(own) // own flushes events when it stops
}

// started is a cache that another manager starts. [newMember] uses it for the connection of a provider, which must not
// start the cache again.
type started struct{ cache.Cache }

// Start blocks until ctx ends.
func (started) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (m providerManager) GetConfig() *rest.Config     { return m.own.GetConfig() }
func (m providerManager) GetHTTPClient() *http.Client { return m.own.GetHTTPClient() }
func (m providerManager) GetClient() client.Client    { return m.own.GetClient() }
func (m providerManager) GetAPIReader() client.Reader { return m.own.GetAPIReader() }
func (m providerManager) GetEventRecorder(name string) events.EventRecorder {
	return m.own.GetEventRecorder(name)
}

func (m providerManager) GetEventRecorderFor(name string) record.EventRecorder {
	return m.own.GetEventRecorderFor(name) //nolint:staticcheck // deprecated, and part of the interface
}

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

// member is the manager as the controllers of one provider see it: the caches and the life of the process, and clients with
// an identity of their own. What they read from the API server, write and record, they do as themselves.
type member struct {
	manager.Manager
	own cluster.Cluster
}

// newMember returns the manager for controllers that reach the management cluster by access.
func newMember(mgr manager.Manager, access *rest.Config) (manager.Manager, error) {
	own, err := cluster.New(access, func(o *cluster.Options) {
		o.Scheme, o.Logger, o.Client = mgr.GetScheme(), mgr.GetLogger(), clientOptions()
		o.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mgr.GetRESTMapper(), nil }
		o.NewCache = func(*rest.Config, cache.Options) (cache.Cache, error) { return started{mgr.GetCache()}, nil }
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to the management cluster: %w", err)
	}
	return member{Manager: mgr, own: own}, mgr.Add(own) // it flushes events when it ends
}

// started is a cache that is started elsewhere.
type started struct{ cache.Cache }

// Start waits for the end.
func (started) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (m member) GetConfig() *rest.Config     { return m.own.GetConfig() }
func (m member) GetHTTPClient() *http.Client { return m.own.GetHTTPClient() }
func (m member) GetClient() client.Client    { return m.own.GetClient() }
func (m member) GetAPIReader() client.Reader { return m.own.GetAPIReader() }
func (m member) GetEventRecorder(name string) events.EventRecorder {
	return m.own.GetEventRecorder(name)
}

// GetEventRecorderFor is part of the interface.
func (m member) GetEventRecorderFor(name string) record.EventRecorder {
	return m.own.GetEventRecorderFor(name) //nolint:staticcheck // deprecated, and part of the interface
}

package world

import (
	"context"
	"net/http"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"github.com/slipwayhq/slipway/internal/plan/memory"
)

// inMemory is the manager of the controllers in a [World], which get it with [World.Setup]. Its HTTP client and REST
// configuration reject all requests, so nothing can be called outside of the simulation.
type inMemory struct {
	world  *World
	scheme *runtime.Scheme
	client *memory.Client
}

var _ manager.Manager = &inMemory{}

// newManager returns the manager of a [World].
func newManager(w *World, scheme *runtime.Scheme) *inMemory {
	return &inMemory{world: w, scheme: scheme, client: w.API.Client(w.transform)}
}

func (m *inMemory) Add(r manager.Runnable) error {
	m.world.mu.Lock()
	defer m.world.mu.Unlock()
	m.world.runnables = append(m.world.runnables, r)
	return nil
}

// GetCache implements cluster.Cluster. Each caller is a source that is about to register a handler.
func (m *inMemory) GetCache() cache.Cache {
	m.world.mu.Lock()
	defer m.world.mu.Unlock()
	m.world.expected++
	return &cacheOf{Reader: m.world.reader, world: m.world}
}

// GetControllerOptions implements manager.Manager. Names are not validated, because several plans may run in one
// process, and queues without priorities have a fixed order.
func (m *inMemory) GetControllerOptions() config.Controller {
	yes, no := true, false
	return config.Controller{SkipNameValidation: &yes, UsePriorityQueue: &no, RecoverPanic: &yes, Logger: logr.Discard()}
}

func (m *inMemory) GetClient() client.Client { return m.client }

func (m *inMemory) GetAPIReader() client.Reader { return m.world.API.Reader(nil) }

func (m *inMemory) GetFieldIndexer() client.FieldIndexer { return m.world.reader }

func (m *inMemory) GetScheme() *runtime.Scheme { return m.scheme }

func (m *inMemory) GetRESTMapper() meta.RESTMapper { return m.world.API.Mapper() }

func (m *inMemory) GetLogger() logr.Logger { return logr.Discard() }

func (m *inMemory) GetHTTPClient() *http.Client { return &http.Client{Transport: rejectingTransport{}} }

func (m *inMemory) GetConfig() *rest.Config {
	return &rest.Config{Host: "https://whatif.invalid", Transport: rejectingTransport{}}
}

// Start implements manager.Manager. The world starts the runnables instead.
func (m *inMemory) Start(context.Context) error { return errNotSimulated }

func (m *inMemory) Elected() <-chan struct{} { return synced{}.Done() }

func (m *inMemory) AddMetricsServerExtraHandler(string, http.Handler) error { return nil }

func (m *inMemory) AddHealthzCheck(string, healthz.Checker) error { return nil }

func (m *inMemory) AddReadyzCheck(string, healthz.Checker) error { return nil }

func (m *inMemory) GetWebhookServer() webhook.Server { return nil }

func (m *inMemory) GetConverterRegistry() conversion.Registry { return conversion.NewRegistry() }

func (m *inMemory) GetEventRecorderFor(string) record.EventRecorder {
	return &record.FakeRecorder{}
}

// GetEventRecorder implements cluster.Cluster. Without a channel the recorder drops events.
func (m *inMemory) GetEventRecorder(string) events.EventRecorder { return &events.FakeRecorder{} }

// rejectingTransport rejects every request.
type rejectingTransport struct{}

func (rejectingTransport) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errNotSimulated
}

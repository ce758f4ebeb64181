package simulated

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	genericfilters "k8s.io/apiserver/pkg/endpoints/filters"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/kubernetes"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	openapicommon "k8s.io/kube-openapi/pkg/common"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/generated/openapi"

	"github.com/slipwayhq/slipway/internal/pause"
	"github.com/slipwayhq/slipway/internal/simulated/store"
)

// api handles the requests of all simulated clusters, like a kube-apiserver with many etcds. The [Server] creates one
// before it starts the first cluster; the context of a request selects the cluster ([withTenant]).
type api struct {
	handler http.Handler
	client  kubernetes.Interface
	// describe installs the OpenAPI documents at the first request, because they cost more than the rest of the api.
	describe func()
	// paths is the response to a request for the root path.
	paths atomic.Pointer[[]byte]
}

// newAPI creates the api. It takes some tenths of a second of CPU time, so call it once per process. [Server.Start]
// calls it for the first cluster.
func newAPI(ctx context.Context) (*api, error) {
	a := &api{}
	client, err := kubernetes.NewForConfig(a.Loopback())
	if err != nil {
		return nil, err
	}
	a.client = client
	p := parts{api: a, resources: resources()}
	p.options = options{versions: newVersions(p.resources), client: store.NewClient(ctx)}
	p.access, p.rules = newAccess(func() rbacclient.RbacV1Interface { return client.RbacV1() })
	core, err := p.core()
	if err != nil {
		return nil, err
	}
	groups, err := p.groups()
	if err != nil {
		return nil, err
	}
	c := a.config(p, namespaceAdmission{core.VersionedResourcesStorageMap["v1"]["namespaces"]})
	server, err := c.Complete(nil).New("simulated", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("preparing the API server: %w", err)
	}
	handler := server.Handler
	handler.NonGoRestfulMux.UnlistedHandleFunc("/", a.root)
	if err := server.InstallLegacyAPIGroup(genericapiserver.DefaultLegacyAPIPrefix, core); err != nil {
		return nil, fmt.Errorf("installing the core group: %w", err)
	}
	if err := server.InstallAPIGroups(groups...); err != nil {
		return nil, fmt.Errorf("installing the groups: %w", err)
	}
	// The groups have copied the definitions of their kinds, 6 MB in total. Replace the whole config to release the
	// memory, because a function that the first reader stored in the config also references the definitions.
	*c.OpenAPIV3Config = openapicommon.OpenAPIV3Config{}
	a.handler, a.describe = handler, sync.OnceFunc(func() { a.describeAll(handler) })
	a.list(handler)
	return a, nil
}

// Client returns a client with full access that bypasses the network. The context of each call selects the cluster.
func (a *api) Client() kubernetes.Interface { return a.client }

// config returns the configuration of the server, without its groups.
func (a *api) config(p parts, admission namespaceAdmission) *genericapiserver.Config {
	c := genericapiserver.NewConfig(legacyscheme.Codecs)
	c.ExternalAddress = "127.0.0.1:443"
	c.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	c.LoopbackClientConfig = a.Loopback()
	c.RESTOptionsGetter = p.options
	c.AdmissionControl = admission
	c.Authentication.Authenticator = authenticator.RequestFunc(authenticate)
	c.Authorization.Authorizer = p.access
	c.EnableProfiling, c.EnableMetrics, c.EnableIndex = false, false, false
	c.HealthzChecks, c.ReadyzChecks, c.LivezChecks = nil, nil, nil
	c.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer())
	c.BuildHandlerChainFunc = handlerChain
	return c
}

func namer() *openapinamer.DefinitionNamer {
	return openapinamer.NewDefinitionNamer(legacyscheme.Scheme)
}

// describeAll installs the OpenAPI documents. Definitions are built for each request, so a cluster without such
// requests caches none.
func (a *api) describeAll(handler *genericapiserver.APIServerHandler) {
	names := namer()
	v3 := genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, names)
	v2 := genericapiserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, names)
	// A document without a version cannot be encoded as protobuf, which kubectl requests to validate a List.
	v2.Info.Title, v2.Info.Version = "Kubernetes", compatibility.DefaultBuildEffectiveVersion().EmulationVersion().String()
	v3.Info = v2.Info
	routes.OpenAPI{V3Config: v3}.InstallV3(handler.GoRestfulContainer, handler.NonGoRestfulMux)
	routes.OpenAPI{Config: v2}.InstallV2(handler.GoRestfulContainer, handler.NonGoRestfulMux)
	a.list(handler)
}

// list prepares the response for the root path. Clients that check the availability of the api request it repeatedly.
func (a *api) list(handler *genericapiserver.APIServerHandler) {
	var answer bytes.Buffer
	_ = json.NewEncoder(&answer).Encode(metav1.RootPaths{Paths: handler.ListedPaths()}) // strings can be encoded
	a.paths.Store(new(answer.Bytes()))
}

// root handles requests for the root path.
func (a *api) root(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(*a.paths.Load()) // the client may be gone
}

// handlerChain wraps the handler in the filters that every request passes.
func handlerChain(handler http.Handler, c *genericapiserver.Config) http.Handler {
	handler = genericfilters.WithAuthorization(handler, c.Authorization.Authorizer, c.Serializer)
	handler = genericfilters.WithAuthentication(
		handler, c.Authentication.Authenticator, genericfilters.Unauthorized(c.Serializer), nil, nil)
	handler = genericfilters.WithWarningRecorder(handler)
	handler = genericfilters.WithCacheControl(handler)
	handler = genericfilters.WithRequestInfo(handler, c.RequestInfoResolver)
	handler = genericfilters.WithRequestReceivedTimestamp(handler)
	handler = filters.WithPanicRecovery(handler, c.RequestInfoResolver)
	return genericfilters.WithAuditInit(handler)
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t := tenantFrom(r.Context())
	if t == nil {
		http.Error(w, "the request names no cluster", http.StatusNotFound)
		return
	}
	if t.Delay != nil {
		if d := t.Delay(); d > 0 && pause.Sleep(r.Context(), d) != nil {
			return
		}
	}
	switch path := strings.TrimSuffix(r.URL.Path, "/"); path {
	case "/livez", "/readyz", "/healthz":
		_, _ = w.Write([]byte("ok")) // the client may be gone
	case "/version":
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(version(t.Version)) // the client may be gone
	default:
		if strings.HasPrefix(path, "/openapi/") {
			a.describe()
		}
		a.handler.ServeHTTP(w, r)
	}
}

// version returns the response of GET /version for a Kubernetes version.
func version(v string) apimachineryversion.Info {
	numbers := append(strings.SplitN(strings.TrimPrefix(v, "v"), ".", 3), "", "")
	return apimachineryversion.Info{
		Major: numbers[0], Minor: numbers[1], GitVersion: v, GitTreeState: "simulated",
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

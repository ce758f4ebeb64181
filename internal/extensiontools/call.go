package extensiontools

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/sdk/extension/recording"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

// CallOptions select the handler and the request of a [Call]. `slipway extension call` fills them in.
type CallOptions struct {
	// Handler is "handler.extension", or the handler alone if it is unique.
	Handler string
	// Request is YAML or JSON; apiVersion and kind may be omitted.
	Request []byte
	// Config connects to the management cluster, for extensions behind a Service.
	Config *rest.Config
	// Now is the clock.
	Now func() time.Time
}

// CallResult is the result of a call. `slipway extension call -o json` prints it, so its fields are an interface for
// scripts.
type CallResult struct {
	// Handler is "handler.extension".
	Handler string `json:"handler"`
	Hook    string `json:"hook"`
	// Object is the object in the request.
	Object string `json:"object,omitempty"`
	// FailurePolicy is the failure policy that the manager applies.
	FailurePolicy runtimev1.FailurePolicy `json:"failurePolicy"`
	Seconds       float64                 `json:"seconds"`
	Response      hooks.Response          `json:"response"`
}

// Call calls a handler of a registered extension, for `slipway extension call`. A response with status Failure is an
// error, as in the manager. The result identifies the handler even if there is an error.
func Call(ctx context.Context, c client.Client, o CallOptions) (CallResult, error) {
	configs, err := ListExtensions(ctx, c)
	if err != nil {
		return CallResult{}, err
	}
	config, handler, err := find(configs, o.Handler)
	if err != nil {
		return CallResult{}, err
	}
	id, err := hooks.ParseID(handler.RequestHook.APIVersion, handler.RequestHook.Hook)
	if err != nil {
		return CallResult{}, fmt.Errorf("reading the hook of handler %s: %w", handler.Name, err)
	}
	served, ok := hooks.Default().Newest(id.Name)
	if !ok {
		return CallResult{}, fault.New(fault.Invalid, "UnknownHook", "handler %s serves %s, which this version of slipway does not know", handler.Name, id)
	}
	request, err := requestOf(served, o.Request)
	if err != nil {
		return CallResult{}, err
	}
	text, object := objectOf(request)
	result := CallResult{Handler: handler.Name, Hook: id.Hook, Object: text, FailurePolicy: handler.FailurePolicy, Response: served.NewResponse()}
	extensions, done, err := dial(c, config, o)
	if err != nil {
		return result, err
	}
	defer done()
	began := o.Now()
	err = extensions.Call(ctx, object, handler.Name, hook.Invocation{Request: request, Response: result.Response})
	result.Seconds = o.Now().Sub(began).Seconds()
	if err == nil {
		served.StampResponse(result.Response)
	}
	return result, err
}

// find returns the handler with a name, and a copy of its extension.
func find(configs []runtimev1.ExtensionConfig, name string) (*runtimev1.ExtensionConfig, runtimev1.ExtensionHandler, error) {
	var known, found []string
	var config *runtimev1.ExtensionConfig
	var handler runtimev1.ExtensionHandler
	for _, c := range configs {
		for _, h := range c.Status.Handlers {
			known = append(known, h.Name)
			if short, _, _ := strings.Cut(h.Name, "."); h.Name == name || short == name {
				config, handler, found = c.DeepCopy(), h, append(found, h.Name)
			}
		}
	}
	switch {
	case len(found) == 1:
		return config, handler, nil
	case len(found) > 1:
		return nil, handler, fault.New(fault.Invalid, "HandlerAmbiguous", "several extensions have a handler %q; say which: %s", name, strings.Join(found, ", "))
	case len(known) == 0:
		return nil, handler, fault.New(fault.Gone, "HandlerNotFound",
			"no extension has been discovered; \"slipway extension run\" registers one, \"slipway extension list\" says what is wrong with those that are")
	}
	slices.Sort(known)
	return nil, handler, fault.New(fault.Gone, "HandlerNotFound", "there is no handler %q; there are: %s", name, strings.Join(known, ", "))
}

// requestOf parses a request of the hook. Unknown fields are an error, because they would be dropped silently.
func requestOf(h hooks.Hook, text []byte) (runtime.Object, error) {
	var meta metav1.TypeMeta
	if err := yaml.Unmarshal(text, &meta); err != nil {
		return nil, fault.New(fault.Invalid, "Request", "the request is neither YAML nor JSON: %v", err)
	}
	if meta.Kind != "" && meta.Kind != h.RequestKind() || meta.APIVersion != "" && meta.APIVersion != h.APIVersion() {
		return nil, fault.New(fault.Invalid, "Request", "the request is a %s of %s; the handler takes a %s of %s",
			meta.Kind, meta.APIVersion, h.RequestKind(), h.APIVersion())
	}
	request := h.NewRequest()
	if err := yaml.UnmarshalStrict(text, request); err != nil {
		return nil, fault.New(fault.Invalid, "Request", "the request is not a valid %s: %v", h.RequestKind(), err)
	}
	return request, nil
}

// objectOf returns the object in a request, as Kind namespace/name and as metadata for the namespaceSelector.
func objectOf(request runtime.Object) (string, client.Object) {
	o := &metav1.PartialObjectMetadata{}
	data, err := json.Marshal(request)
	if err != nil {
		return "", o
	}
	text := recording.Object(data)
	if _, key, ok := strings.Cut(text, " "); ok {
		if namespace, name, ok := strings.Cut(key, "/"); ok {
			o.Namespace, o.Name = namespace, name
		}
	}
	return text, o
}

// dial returns the manager's client for one extension, with the handlers from the status of its ExtensionConfig.
// Failure policies do not apply, so that failures are displayed.
func dial(c client.Client, config *runtimev1.ExtensionConfig, o CallOptions) (*hook.Extensions, func(), error) {
	done := func() {}
	if config.Spec.ClientConfig.Service.IsDefined() {
		through, err := throughAPIServer(config, o.Config)
		if err != nil {
			return nil, nil, err
		}
		done = func() { _ = through.Close() }
	}
	for i := range config.Status.Handlers {
		config.Status.Handlers[i].FailurePolicy = runtimev1.FailurePolicyFail
	}
	extensions, err := hook.New(hook.Config{Now: o.Now, NamespaceLabels: func(ctx context.Context, name string) (labels.Set, error) {
		ns := &corev1.Namespace{}
		err := c.Get(ctx, client.ObjectKey{Name: name}, ns)
		return ns.Labels, err
	}})
	if err == nil {
		err = extensions.Restore(config)
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	extensions.Prime()
	return extensions, func() { extensions.Forget(config.Name); done() }, nil
}

// throughAPIServer replaces the Service by a proxy that sends requests through the API server, because this machine
// cannot reach a Service of the management cluster.
func throughAPIServer(config *runtimev1.ExtensionConfig, cluster *rest.Config) (*proxy, error) {
	service := config.Spec.ClientConfig.Service
	port := int32(443)
	if service.Port != nil {
		port = *service.Port
	}
	httpClient, err := rest.HTTPClientFor(cluster)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	server, _, err := rest.DefaultServerUrlFor(cluster)
	if err != nil {
		return nil, fmt.Errorf("address of the API server: %w", err)
	}
	upstream := &url.URL{Scheme: server.Scheme, Host: server.Host, Path: strings.TrimSuffix(server.Path, "/") +
		fmt.Sprintf("/api/v1/namespaces/%s/services/https:%s:%d/proxy", service.Namespace, service.Name, port)}
	through, err := startProxy(proxyOptions{Listen: "127.0.0.1:0", Upstream: upstream, Client: httpClient})
	if err != nil {
		return nil, err
	}
	config.Spec.ClientConfig = runtimev1.ClientConfig{URL: through.URL + service.Path, CABundle: through.CA}
	return through, nil
}

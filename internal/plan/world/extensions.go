package world

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

// HookCall is a simulated call of a lifecycle hook. Package plan lists it in the plan.
type HookCall struct {
	At      time.Time
	Hook    string
	Cluster client.ObjectKey
	// Handlers are in calling order.
	Handlers []string
}

// Extensions simulates Runtime Extensions. Package plan passes it to the controllers in place of the registry of
// package hook. Lifecycle hooks are recorded but never called, and do not block, because a plan must have no effect.
// UpdateMachine is not called either, and succeeds immediately. Extensions that only compute a result are called if
// there is a registry (extensioncalls.go). It implements hook.Client.
type Extensions struct {
	world  *World
	reader client.Reader
	// registry calls extensions; nil: none is called.
	registry *hook.Extensions

	mu         sync.Mutex
	calls      []HookCall
	recorded   map[string]bool
	failed     map[string]error
	unanswered map[extensionCall]map[client.ObjectKey]bool
}

var _ hook.Client = &Extensions{}

// NewExtensions returns the extensions that the ExtensionConfigs of a simulation define. The registry calls extensions
// that compute a result; nil: none is called. Package plan calls it for each run.
func NewExtensions(w *World, registry *hook.Extensions) *Extensions {
	return &Extensions{
		world: w, reader: w.API.Reader(nil), registry: registry,
		recorded: map[string]bool{}, failed: map[string]error{}, unanswered: map[extensionCall]map[client.ObjectKey]bool{},
	}
}

// Calls returns the calls since the given time, in order. Package plan calls it at the end of a run.
func (e *Extensions) Calls(since time.Time) []HookCall {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(e.calls), func(c HookCall) bool { return c.At.Before(since) })
}

// Handlers implements hook.Client.
func (e *Extensions) Handlers(ctx context.Context, name hooks.Name, of client.Object) ([]string, error) {
	list := &runtimev1.ExtensionConfigList{}
	if err := e.reader.List(ctx, list); err != nil {
		return nil, err
	}
	var out []string
	for i := range list.Items {
		config := &list.Items[i]
		selected, err := e.isSelected(ctx, config, of.GetNamespace())
		if err != nil {
			return nil, err
		}
		for _, h := range config.Status.Handlers {
			group, _, _ := strings.Cut(h.RequestHook.APIVersion, "/")
			if selected && group == name.Group && h.RequestHook.Hook == name.Hook {
				out = append(out, h.Name)
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// CallAll implements hook.Client for the lifecycle hooks: it records the call.
func (e *Extensions) CallAll(ctx context.Context, of client.Object, x hook.Invocation) (hook.CallAllResult, error) {
	name := hookOf(x.Request)
	handlers, err := e.Handlers(ctx, hooks.Name{Group: hooksv1.GroupVersion.Group, Hook: name}, of)
	if err != nil || len(handlers) == 0 {
		return hook.CallAllResult{}, err
	}
	key := client.ObjectKeyFromObject(of)
	e.mu.Lock()
	defer e.mu.Unlock()
	if once := name + " " + key.String() + " " + x.CacheKey; !e.recorded[once] {
		e.recorded[once] = true
		e.calls = append(e.calls, HookCall{At: e.world.Now(), Hook: name, Cluster: key, Handlers: handlers})
	}
	return hook.CallAllResult{Handlers: handlers}, nil
}

// hookOf returns the name of the hook of a request, which follows from its Go type.
func hookOf(request runtime.Object) string {
	return strings.TrimSuffix(reflect.TypeOf(request).Elem().Name(), "Request")
}

// isSelected reports whether an extension is called for objects in a namespace. Namespaces that are missing in the copy
// are selected.
func (e *Extensions) isSelected(ctx context.Context, config *runtimev1.ExtensionConfig, namespace string) (bool, error) {
	if config.Spec.NamespaceSelector == nil {
		return true, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(config.Spec.NamespaceSelector)
	if err != nil || selector.Empty() {
		return err == nil, nil
	}
	labels, err := hook.NamespaceLabels(e.reader)(ctx, namespace)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return err == nil && selector.Matches(labels), err
}

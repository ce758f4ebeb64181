package world

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hook"
)

// Hooks that only compute a result are called by handler name: they patch or validate templates, define variables, or
// plan upgrades. Without a response the controllers stop, or continue with the previous response.

// extensionCall identifies a call of an extension. [Extensions] lists the objects of equal calls together.
type extensionCall struct {
	hook, handler string
	// problem is the error of the call. It is empty if the extension was not called.
	problem string
}

// Unanswered is a call of an extension without a response. The plan lists it, because effects are unknown.
type Unanswered struct {
	Hook, Handler string
	// Problem is the error of the call. It is empty if the extension was not called.
	Problem string
	// Objects are the Clusters, ClusterClasses or MachineSets of the calls, in order.
	Objects []client.ObjectKey
}

// Unanswered returns the calls without a response, in order. Package plan calls it at the end of a run.
func (e *Extensions) Unanswered() []Unanswered {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []Unanswered
	for q, of := range e.unanswered {
		keys := slices.SortedFunc(maps.Keys(of), func(a, b client.ObjectKey) int { return strings.Compare(a.String(), b.String()) })
		out = append(out, Unanswered{Hook: q.hook, Handler: q.handler, Problem: q.problem, Objects: keys})
	}
	slices.SortFunc(out, func(a, b Unanswered) int {
		return cmp.Or(strings.Compare(a.Handler, b.Handler), strings.Compare(a.Hook, b.Hook), strings.Compare(a.Problem, b.Problem))
	})
	return out
}

// Call implements hook.Client; the controllers call it. If variables cannot be discovered, it returns the previous
// ones.
func (e *Extensions) Call(ctx context.Context, of client.Object, handler string, x hook.Invocation) error {
	q := extensionCall{hook: hookOf(x.Request), handler: handler}
	if update, ok := x.Response.(*hooksv1.UpdateMachineResponse); ok { // UpdateMachine changes machines, so it is never called, and succeeds at once
		*update = hooksv1.UpdateMachineResponse{}
		update.SetStatus(hooksv1.ResponseStatusSuccess)
		return nil
	}
	err := e.callOnce(ctx, of, q, x)
	if err == nil {
		return nil
	}
	if e.registry != nil {
		q.problem = fault.UserMessage(err)
	}
	e.note(q, of)
	class, isClass := of.(*clusterv1.ClusterClass)
	response, discovers := x.Response.(*hooksv1.DiscoverVariablesResponse)
	if !isClass || !discovers {
		return err
	}
	response.Variables = discovered(class, handler)
	return nil
}

// callOnce calls an extension, at most once per request. The simulated clock runs fast, so retries of a failing
// extension would follow each other without a pause.
func (e *Extensions) callOnce(ctx context.Context, of client.Object, q extensionCall, x hook.Invocation) error {
	if e.registry == nil {
		return fault.New(fault.Invalid, "ExtensionNotCalled",
			"a plan calls Runtime Extensions only with --call-extensions, so that what %s answers is not known; what depends on it is not in the plan", q.handler)
	}
	once := fmt.Sprint(q, client.ObjectKeyFromObject(of), x.CacheKey)
	e.mu.Lock()
	err, known := e.failed[once]
	e.mu.Unlock()
	if known {
		return err
	}
	if err = e.call(ctx, of, q.handler, x); err != nil {
		e.mu.Lock()
		e.failed[once] = err
		e.mu.Unlock()
	}
	return err
}

func (e *Extensions) note(q extensionCall, of client.Object) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.unanswered[q] == nil {
		e.unanswered[q] = map[client.ObjectKey]bool{}
	}
	e.unanswered[q][client.ObjectKeyFromObject(of)] = true
}

// call calls an extension according to its ExtensionConfig in the simulation.
func (e *Extensions) call(ctx context.Context, of client.Object, handler string, x hook.Invocation) error {
	list := &runtimev1.ExtensionConfigList{}
	if err := e.reader.List(ctx, list); err != nil {
		return err
	}
	_, extension, _ := strings.Cut(handler, ".")
	for i := range list.Items {
		config := &list.Items[i]
		selected, err := e.isSelected(ctx, config, of.GetNamespace())
		if err != nil {
			return err
		}
		if config.Name == extension && !selected {
			return fault.New(fault.Invalid, hook.ReasonNamespaceMismatch, "handler %s does not apply to objects in namespace %s", handler, of.GetNamespace())
		}
		config.Spec.NamespaceSelector = nil
		_ = e.registry.Restore(config) // Call reports the problem
	}
	e.registry.Prime()
	return e.registry.Call(ctx, of, handler, x)
}

// discovered returns the variables from the handler's last response.
func discovered(class *clusterv1.ClusterClass, handler string) []clusterv1.ClusterClassVariable {
	var out []clusterv1.ClusterClassVariable
	for _, p := range class.Spec.Patches {
		if p.External == nil || p.External.DiscoverVariablesExtension != handler {
			continue
		}
		for _, v := range class.Status.Variables {
			for _, d := range v.Definitions {
				if d.From == p.Name {
					out = append(out, clusterv1.ClusterClassVariable{
						Name: v.Name, Required: d.Required, DeprecatedV1Beta1Metadata: d.DeprecatedV1Beta1Metadata, Schema: d.Schema,
					})
				}
			}
		}
	}
	return out
}

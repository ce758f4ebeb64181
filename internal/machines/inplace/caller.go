package inplace

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

const (
	// responseTTL is how long a response to the same request is cached. The response depends only on the request.
	responseTTL = 10 * time.Minute
	// busyRetryDelay is the retry delay if a call could not be made at all.
	busyRetryDelay = 500 * time.Millisecond
)

// Reasons of problems.
const (
	// reasonManyExtensions: several extensions implement the hook, and there is no rule which of them performs the
	// update.
	reasonManyExtensions = "ManyInPlaceExtensions"
	// reasonNoExtension: the update has started, but no extension implements the hook.
	reasonNoExtension = "NoInPlaceExtension"
	// reasonWrongPatch: a patch in the response cannot be applied.
	reasonWrongPatch = "WrongInPlacePatch"
)

// UpdateCheck is the result of a CanUpdate hook. Besides Handler, at most one field describes the result. If none is
// set, no extension implements the hook.
type UpdateCheck struct {
	// Handler is the handler that responded, as "<handler>.<extension>".
	Handler string
	// Covered is set if the extension makes all changes.
	Covered bool
	// Uncovered lists the changes that the extension does not make: "LocalMachine spec.image, Machine
	// spec.version".
	Uncovered string
	// Problem is the error of the call, including the handler. A user may have to act; the call is retried.
	Problem error
	// Retry is the delay before a failed call is repeated.
	Retry time.Duration
	// CallAfter is the delay before a call that could not be made is attempted again.
	CallAfter time.Duration
}

// IsKnown reports whether the result is known. Neither an in-place update nor a rollout may start without it. The
// MachineDeployment controller calls it.
func (a UpdateCheck) IsKnown() bool { return a.Problem == nil && a.CallAfter == 0 }

// Progress is the state of an extension's update of a Machine. The Machine controller stores it in its snapshot and
// reports it in the condition Updating.
type Progress struct {
	// Handler is the handler that responded, as "<handler>.<extension>".
	Handler string
	// Done is set if the Machine matches its desired state.
	Done bool
	// Message is the extension's message while the update is in progress.
	Message string
	// Retry is the delay before the next call, also after a failure.
	Retry time.Duration
	// Problem is the error of the call, including the handler; the state of the update is then unknown.
	Problem error
	// CallAfter is the delay before a call that could not be made is attempted again.
	CallAfter time.Duration
}

// Caller calls the hooks for in-place updates: CanUpdateMachineSet for the MachineDeployment controller,
// CanUpdateMachine for the KubeadmControlPlane controller, and UpdateMachine for the Machine controller. Requests and
// responses are the types of Cluster API's hooks.
type Caller struct {
	Client hook.Client
	// Failed remembers failed calls. If it is nil, failed calls are repeated at once.
	Failed *FailedCalls
	// Now is the clock for Failed. If it is nil, time.Now is used.
	Now func() time.Time
}

func (c Caller) now() time.Time {
	if c.Now == nil {
		return time.Now()
	}
	return c.Now()
}

// call calls a handler, unless the same call failed recently. In that case left is the remaining delay before it
// may be repeated. The function check validates the response.
func (c Caller) call(ctx context.Context, of client.Object, handler string, x hook.Invocation, check func() error) (left time.Duration, err error) {
	key := handler + "/" + string(of.GetUID()) + "/" + x.CacheKey
	if left, problem := c.Failed.last(key, c.now()); left > 0 {
		return left, problem
	}
	if err = c.Client.Call(ctx, of, handler, x); err == nil {
		err = check()
	}
	if err == nil || ctx.Err() != nil || isTooEarly(err) {
		return 0, err
	}
	c.Failed.note(key, err, c.now())
	return retryFailed, err
}

// isTooEarly reports whether a call could not be made yet.
func isTooEarly(err error) bool {
	f := fault.As(err)
	return f != nil && (f.Reason == hook.ReasonBusy || f.Reason == hook.ReasonNotReady)
}

// CanUpdateMachine returns whether the extension can update a control plane Machine and its objects to their desired
// state. An error is returned only if the context is done.
func (c Caller) CanUpdateMachine(ctx context.Context, current, desired Machine) (UpdateCheck, error) {
	request := &hooksv1.CanUpdateMachineRequest{}
	var err, err2 error
	request.Current, err = machineObjects(current)
	request.Desired, err2 = machineObjects(desired)
	if err = cmp.Or(err, err2); err != nil {
		return UpdateCheck{Problem: err}, nil
	}
	response := &hooksv1.CanUpdateMachineResponse{}
	return c.checkUpdate(ctx, current.Machine, updateCheckCall{
		hook: "CanUpdateMachine", request: hook.Invocation{Request: request, Response: response},
		uncovered: func() ([]string, error) { return uncoveredOfMachine(request, response) },
		accepts: func(answer hooks.Response) bool {
			typed, ok := answer.(*hooksv1.CanUpdateMachineResponse)
			if !ok {
				return true // another version of the hook, which is checked after its conversion
			}
			_, err := uncoveredOfMachine(request, typed)
			return err == nil
		},
	})
}

// CanUpdateMachineSet is [Caller.CanUpdateMachine] for the Machines of a MachineSet. It compares the MachineSet and
// the templates. The MachineDeployment controller calls it before a rollout.
func (c Caller) CanUpdateMachineSet(ctx context.Context, current, desired MachineSet) (UpdateCheck, error) {
	request := &hooksv1.CanUpdateMachineSetRequest{}
	var err, err2 error
	request.Current, err = setObjects(current)
	request.Desired, err2 = setObjects(desired)
	if err = cmp.Or(err, err2); err != nil {
		return UpdateCheck{Problem: err}, nil
	}
	response := &hooksv1.CanUpdateMachineSetResponse{}
	return c.checkUpdate(ctx, current.MachineSet, updateCheckCall{
		hook: "CanUpdateMachineSet", request: hook.Invocation{Request: request, Response: response},
		uncovered: func() ([]string, error) { return uncoveredOfSet(request, response) },
		accepts: func(answer hooks.Response) bool {
			typed, ok := answer.(*hooksv1.CanUpdateMachineSetResponse)
			if !ok {
				return true // another version of the hook, which is checked after its conversion
			}
			_, err := uncoveredOfSet(request, typed)
			return err == nil
		},
	})
}

// UpdateMachine calls the extension to continue the update of a Machine. A response that requests a later call is
// cached until then, unless the spec of an object changes. An error is returned only if the context is done. The
// Machine controller calls it in each reconciliation until the update is complete.
func (c Caller) UpdateMachine(ctx context.Context, desired Machine) (Progress, error) {
	handler, err := c.handler(ctx, Hook, desired.Machine)
	if err == nil && handler == "" {
		err = fault.New(fault.Invalid, reasonNoExtension,
			"no extension has the hook %s for namespace %s: register one that does", Hook, desired.Machine.Namespace)
	}
	if err != nil {
		return failedProgress(ctx, Progress{}, err)
	}
	request := &hooksv1.UpdateMachineRequest{}
	objects, err := machineObjects(desired)
	if err != nil {
		return Progress{Problem: err}, nil
	}
	request.Desired = hooksv1.UpdateMachineRequestObjects(objects)
	input, err := inputOf(desired)
	if err != nil {
		return Progress{Problem: err}, nil
	}
	response := &hooksv1.UpdateMachineResponse{}
	retry, err := c.call(ctx, desired.Machine, handler, hook.Invocation{Request: request, Response: response, CacheKey: input, Strict: true}, func() error { return nil })
	if err != nil {
		return failedProgress(ctx, Progress{Handler: handler, Retry: retry}, err)
	}
	progress := Progress{Handler: handler, Retry: time.Duration(response.RetryAfterSeconds) * time.Second}
	if progress.Done = progress.Retry == 0; !progress.Done {
		progress.Message = hook.ClipMessage(response.Message)
	}
	return progress, nil
}

// updateCheckCall is a call of one of the two CanUpdate hooks.
type updateCheckCall struct {
	hook    string
	request hook.Invocation
	// uncovered returns the changes that the response in request does not make.
	uncovered func() ([]string, error)
	// accepts reports whether the patches in a response can be applied. Other responses are not cached.
	accepts func(hooks.Response) bool
}

func (c Caller) checkUpdate(ctx context.Context, of client.Object, q updateCheckCall) (UpdateCheck, error) {
	handler, err := c.handler(ctx, q.hook, of)
	if err == nil && handler == "" {
		return UpdateCheck{}, nil
	}
	var left []string
	var retry time.Duration
	if err == nil {
		q.request.CacheTTL, q.request.Accept = responseTTL, q.accepts
		q.request.CacheKey, err = digestOf(q.request.Request)
	}
	if err == nil {
		retry, err = c.call(ctx, of, handler, q.request, func() error {
			var wrong error
			if left, wrong = q.uncovered(); wrong != nil {
				return fault.New(fault.Invalid, reasonWrongPatch, "handler %s: %v; correct the extension", handler, wrong)
			}
			return nil
		})
	}
	if err != nil {
		problem, later, err := failure(ctx, q.hook, err)
		return UpdateCheck{Handler: handler, Problem: problem, Retry: retry, CallAfter: later}, err
	}
	return UpdateCheck{Handler: handler, Covered: len(left) == 0, Uncovered: listed(left)}, nil
}

// handler returns the only handler of a hook, or an empty string if there is none.
func (c Caller) handler(ctx context.Context, name string, of client.Object) (string, error) {
	if c.Client == nil {
		return "", nil
	}
	found, err := c.Client.Handlers(ctx, hooks.Name{Group: hooksv1.GroupVersion.Group, Hook: name}, of)
	switch {
	case err != nil:
		return "", err
	case len(found) > 1:
		return "", fault.New(fault.Invalid, reasonManyExtensions,
			"%d handlers have the hook %s, one at most can have it: %s; limit their namespaceSelector, or delete all but one", len(found), name, strings.Join(found, ", "))
	case len(found) == 0:
		return "", nil
	}
	return found[0], nil
}

// failure distinguishes a failed call (problem) from a call that could not be made yet (later) and from the end of
// the context (ended).
func failure(ctx context.Context, name string, err error) (problem error, later time.Duration, ended error) {
	if ctx.Err() != nil {
		return nil, 0, fmt.Errorf("calling hook %s: %w", name, err)
	}
	if isTooEarly(err) {
		return nil, cmp.Or(fault.RetryAfter(err), busyRetryDelay), nil
	}
	return err, 0, nil
}

func failedProgress(ctx context.Context, p Progress, err error) (Progress, error) {
	p.Problem, p.CallAfter, err = failure(ctx, Hook, err)
	return p, err
}

func machineObjects(m Machine) (out hooksv1.CanUpdateMachineRequestObjects, err error) {
	out.Machine = sentMachine(m.Machine)
	if out.InfrastructureMachine, err = sentObject(m.Infrastructure); err == nil {
		out.BootstrapConfig, err = sentObject(m.Bootstrap)
	}
	return out, err
}

func setObjects(s MachineSet) (out hooksv1.CanUpdateMachineSetRequestObjects, err error) {
	out.MachineSet = sentMachineSet(s.MachineSet)
	if out.InfrastructureMachineTemplate, err = sentObject(s.Infrastructure); err == nil {
		out.BootstrapConfigTemplate, err = sentObject(s.Bootstrap)
	}
	return out, err
}

// inputOf returns a digest of the specs in an UpdateMachine request. The response depends on these, not on
// metadata.
func inputOf(m Machine) (string, error) {
	specs := []any{m.Machine.Spec}
	if m.Infrastructure != nil {
		specs = append(specs, m.Infrastructure.Object["spec"])
	}
	if m.Bootstrap != nil {
		specs = append(specs, m.Bootstrap.Object["spec"])
	}
	return digestOf(specs)
}

func digestOf(o any) (string, error) {
	raw, err := encoded(o)
	return hook.DigestOf(raw.Raw), err
}

func uncoveredOfMachine(q *hooksv1.CanUpdateMachineRequest, a *hooksv1.CanUpdateMachineResponse) ([]string, error) {
	current, err := encoded(q.Current.Machine)
	desired, err2 := encoded(q.Desired.Machine)
	if err = cmp.Or(err, err2); err != nil {
		return nil, err
	}
	return uncovered(machineRoot(),
		part{name: "Machine", current: current.Raw, desired: desired.Raw, patch: a.MachinePatch, normal: typed[clusterv1.Machine]},
		part{name: nameOf(q.Desired.InfrastructureMachine.Raw, "infrastructure machine"), current: q.Current.InfrastructureMachine.Raw,
			desired: q.Desired.InfrastructureMachine.Raw, patch: a.InfrastructureMachinePatch},
		part{name: nameOf(q.Desired.BootstrapConfig.Raw, "bootstrap config"), current: q.Current.BootstrapConfig.Raw,
			desired: q.Desired.BootstrapConfig.Raw, patch: a.BootstrapConfigPatch})
}

func uncoveredOfSet(q *hooksv1.CanUpdateMachineSetRequest, a *hooksv1.CanUpdateMachineSetResponse) ([]string, error) {
	current, err := encoded(q.Current.MachineSet)
	desired, err2 := encoded(q.Desired.MachineSet)
	if err = cmp.Or(err, err2); err != nil {
		return nil, err
	}
	return uncovered(templateRoot(),
		part{name: "MachineSet", current: current.Raw, desired: desired.Raw, patch: a.MachineSetPatch, normal: typed[clusterv1.MachineSet]},
		part{name: nameOf(q.Desired.InfrastructureMachineTemplate.Raw, "infrastructure template"), current: q.Current.InfrastructureMachineTemplate.Raw,
			desired: q.Desired.InfrastructureMachineTemplate.Raw, patch: a.InfrastructureMachineTemplatePatch},
		part{name: nameOf(q.Desired.BootstrapConfigTemplate.Raw, "bootstrap template"), current: q.Current.BootstrapConfigTemplate.Raw,
			desired: q.Desired.BootstrapConfigTemplate.Raw, patch: a.BootstrapConfigTemplatePatch})
}

// typed converts JSON of a Cluster API kind to the form in which this program encodes it.
func typed[T any](raw []byte) ([]byte, error) {
	var o T
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, err
	}
	return json.Marshal(o)
}

// nameOf returns the kind of an object for messages, or other if it is unknown.
func nameOf(raw []byte, other string) string {
	var meta struct{ Kind string }
	if json.Unmarshal(raw, &meta) != nil || meta.Kind == "" {
		return other
	}
	return meta.Kind
}

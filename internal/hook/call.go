package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

// Handlers implements [Client], the interface with which controllers call Runtime Extensions.
func (e *Extensions) Handlers(ctx context.Context, hook hooks.Name, of client.Object) ([]string, error) {
	targets, err := e.targets(ctx, hook, of.GetNamespace())
	out := make([]string, 0, len(targets))
	for _, t := range targets {
		out = append(out, t.String())
	}
	return out, err
}

// Call implements [Client]. Controllers call it for hooks that one named handler serves, such as GeneratePatches.
func (e *Extensions) Call(ctx context.Context, of client.Object, handler string, x Invocation) error {
	h, err := e.hookOf(x)
	if err != nil {
		return err
	}
	t, err := e.find(handler)
	if err != nil {
		return err
	}
	if t.handler.Hook.Name != h.Name {
		return fault.New(fault.Invalid, reasonHookMismatch, "handler %s serves hook %s, not %s", t,
			t.handler.Hook.Hook, h.ID.Hook)
	}
	set := &namespaceLabels{read: e.cfg.NamespaceLabels, namespace: of.GetNamespace()}
	matches, err := set.match(ctx, t.settings.selector)
	if err != nil {
		return err
	}
	if !matches {
		return fault.New(fault.Invalid, ReasonNamespaceMismatch, "handler %s does not apply to objects in namespace %s", t,
			of.GetNamespace())
	}
	response, err := e.call(ctx, t, of, x)
	if err != nil {
		return err
	}
	return e.catalog.Up(response, x.Response)
}

// CallAll implements [Client]. [LifecycleCaller] calls it for the lifecycle hooks.
func (e *Extensions) CallAll(ctx context.Context, of client.Object, x Invocation) (CallAllResult, error) {
	h, err := e.hookOf(x)
	if err != nil {
		return CallAllResult{}, err
	}
	targets, err := e.targets(ctx, h.Name, of.GetNamespace())
	if err != nil {
		return CallAllResult{}, err
	}
	responses := make([]hooks.Response, 0, len(targets))
	var called CallAllResult
	for _, t := range targets {
		response, err := e.call(ctx, t, of, x)
		if err != nil {
			return CallAllResult{}, err
		}
		responses = append(responses, response)
		called.Handlers = append(called.Handlers, t.String())
		if b, blocks := e.recordBlocking(t, of, response); blocks {
			called.Blocking = append(called.Blocking, b)
		}
	}
	aggregated := h.NewResponse()
	aggregate(responses, aggregated)
	return called, e.catalog.Up(aggregated, x.Response)
}

// hookOf determines the hook of an invocation from the Go types of its request and response.
func (e *Extensions) hookOf(x Invocation) (hooks.Hook, error) {
	h, ok := e.catalog.OfRequest(x.Request)
	of, ok2 := e.catalog.OfResponse(x.Response)
	if !ok || !ok2 || h.ID != of.ID {
		return h, fault.New(fault.Bug, reasonHookMismatch, "%T and %T are not request and response of the same hook", x.Request, x.Response)
	}
	return h, nil
}

// call returns the response of one handler, in the version of the hook that the handler serves. Every error names the
// handler.
func (e *Extensions) call(ctx context.Context, t target, of client.Object, x Invocation) (hooks.Response, error) {
	served, err := e.callable(t)
	if err != nil {
		return nil, err
	}
	var body []byte
	if x.CacheKey == "" { // the response depends on the whole request
		if body, err = e.encode(t, served, x.Request); err != nil {
			return nil, err
		}
	}
	key := cacheKey(t, of, x.CacheKey, body)
	if cached := e.responses.get(key); cached != nil {
		return cached, nil
	}
	if body == nil { // requests are large, so a request with a cached response is not encoded
		if body, err = e.encode(t, served, x.Request); err != nil {
			return nil, err
		}
	}
	got, err := e.callWithPermit(ctx, t, request{hook: served, object: of, body: body})
	if err == nil {
		if x.Accept == nil || x.Accept(got.response) {
			e.responses.put(key, got.response, got.size, cacheTTL(got.response, x.CacheTTL))
		}
		return got.response, nil
	}
	if !x.Strict && isIgnored(err, t.handler.Policy) {
		ctrl.LoggerFrom(ctx).Info("ignored a failed hook call because of its failure policy", "handler", t.String(), "error", err.Error())
		passed := served.NewResponse()
		passed.SetStatus(hooksv1.ResponseStatusSuccess)
		return passed, nil
	}
	return nil, withHandlerName(err, t)
}

// callable returns the hook that a handler serves. It returns an error, whatever the failure policy is, if the handler
// cannot be called at all, because only a user can correct that.
func (e *Extensions) callable(t target) (hooks.Hook, error) {
	served, ok := e.catalog.Hook(t.handler.Hook)
	if !ok {
		return hooks.Hook{}, fault.New(fault.Invalid, reasonUnknownHook,
			"handler %s serves %s of %s, which this version of Slipway does not support; update the extension or delete its ExtensionConfig",
			t, clip(t.handler.Hook.Hook), clip(t.handler.Hook.APIVersion()))
	}
	if t.problem != nil {
		return hooks.Hook{}, withHandlerName(t.problem, t)
	}
	return served, nil
}

// withHandlerName prefixes the message of a fault with the name of the handler.
func withHandlerName(err error, t target) error {
	f := fault.As(err)
	if f == nil {
		return fmt.Errorf("calling handler %s: %w", t, err)
	}
	out := *f
	out.Message = "handler " + t.String() + ": " + t.failureMessage(f)
	return &out
}

// failureMessage returns the message of a failed call, and adds a remedy if the message has none.
func (t target) failureMessage(f *fault.Fault) string {
	settings := "spec.clientConfig of ExtensionConfig " + t.name
	switch f.Reason {
	case reasonRefused, reasonNoRoute, reasonHostUnknown, reasonTransportFailed:
		return fmt.Sprintf("%s: start the extension, or correct %s", f.Message, settings)
	case reasonTimeout:
		return fmt.Sprintf("%s did not respond within %s; make the extension faster, or raise timeoutSeconds of the handler (now %d, at most %d)",
			t.conn.Endpoint().Host(), t.timeout(), int(t.timeout().Seconds()), int(maxTimeout.Seconds()))
	case reasonLost, reasonTooLarge:
		return f.Message + ": correct the extension"
	case reasonHTTPStatus, reasonRedirect, reasonTLS, reasonNotJSON:
		return fmt.Sprintf("%s: correct the extension, or %s if it refers to another server", f.Message, settings)
	}
	return f.Message
}

// timeout returns how long a call of the handler may take.
func (t target) timeout() time.Duration { return min(t.handler.Timeout, maxTimeout) }

// encode returns the request in the version that the handler serves. Settings of the request override settings of the
// ExtensionConfig.
func (e *Extensions) encode(t target, served hooks.Hook, original runtime.Object) ([]byte, error) {
	converted, err := e.catalog.Down(original, served.ID)
	if err != nil {
		return nil, fault.New(fault.Invalid, reasonHookMismatch, "handler %s: %v", t, err)
	}
	if converted == original { // the original must not be changed
		shallow := reflect.New(reflect.TypeOf(original).Elem())
		shallow.Elem().Set(reflect.ValueOf(original).Elem())
		converted = shallow.Interface().(runtime.Object)
	}
	served.StampRequest(converted)
	if r, ok := converted.(hooksv1.RequestObject); ok && len(t.settings.values) > 0 {
		merged := maps.Clone(t.settings.values)
		maps.Copy(merged, r.GetSettings())
		r.SetSettings(merged)
	}
	body, err := json.Marshal(converted)
	if err != nil {
		return nil, fault.New(fault.Bug, reasonHookMismatch, "the request for handler %s cannot be encoded", t).From(err)
	}
	return body, nil
}

// request is a request to one handler. call creates it, and callWithPermit sends it.
type request struct {
	hook   hooks.Hook
	object client.Object
	body   []byte
}

// callWithPermit calls the handler once it has a permit and if the circuit breakers allow it, and reports the outcome
// to them.
func (e *Extensions) callWithPermit(ctx context.Context, t target, r request) (reply, error) {
	if err := t.acquire(ctx); err != nil {
		return reply{}, err
	}
	e.reportInFlight(t.extension)
	defer func() {
		<-t.permits
		e.reportInFlight(t.extension)
	}()
	permits, err := e.permit(t)
	if err != nil {
		return reply{}, err
	}
	got, err := e.send(ctx, t, r)
	e.reportOutcome(t, permits, err)
	return got, err
}

// acquire waits at most maxWait for a permit, because a waiting worker cannot reconcile other objects of its
// controller. The permit is returned by a receive from t.permits.
func (t target) acquire(ctx context.Context) error {
	select {
	case t.permits <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case t.permits <- struct{}{}:
		return nil
	case <-timer.C:
		return fault.New(fault.Unreachable, ReasonBusy,
			"%d calls to the extension are in flight, the maximum; retrying later", callsAtOnce)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// send sends the request and records a span.
func (e *Extensions) send(ctx context.Context, t target, r request) (reply, error) {
	ctx, span := e.cfg.Tracer.Start(ctx, "call "+r.hook.ID.Hook, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(
			attribute.String("hook", r.hook.ID.String()), attribute.String("handler", t.String()),
			attribute.String("namespace", r.object.GetNamespace()), attribute.String("name", r.object.GetName())))
	defer span.End()
	header := http.Header{}
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
	path := r.hook.Path(t.handler.Name)
	if r.hook.Singleton {
		path = r.hook.Path("")
	}
	got, err := e.post(ctx, t.conn, r.hook, WireRequest{Path: path, Body: r.body, Header: header, Timeout: t.timeout()})
	if got.unread != nil {
		e.logUnread(ctx, t, got.unread)
	}
	if err != nil {
		span.SetStatus(codes.Error, fault.UserMessage(err))
	}
	return got, err
}

// reply is a decoded response.
type reply struct {
	response hooks.Response
	// size approximates the memory that the response needs, in bytes.
	size int
	// unread lists the unknown fields of the response.
	unread error
}

// post sends a request, decodes and checks the response, and records metrics.
func (e *Extensions) post(ctx context.Context, conn *Conn, h hooks.Hook, r WireRequest) (got reply, err error) {
	started := e.cfg.Now()
	body, err := conn.Post(ctx, r)
	if err == nil {
		got.size = len(body) + valueBytes*countValues(body, maxValues)
		got.response, got.unread, err = decode(body, h)
	}
	e.metrics.called(h.ID, conn.Endpoint().Host(), e.cfg.Now().Sub(started), outcomeOf(got.response, err))
	return got, err
}

// logUnread logs unknown fields in responses of an extension, once until they change.
func (e *Extensions) logUnread(ctx context.Context, t target, unread error) {
	text := ClipMessage(unread.Error())
	e.mu.Lock()
	known := t.unread == text
	t.unread = text
	e.mu.Unlock()
	if !known {
		ctrl.LoggerFrom(ctx).Info("response has unknown fields", "handler", t.String(), "fields", text)
	}
}

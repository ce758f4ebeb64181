package reporting

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// maxReadyAge limits how old the Ready transition of a Machine may be when the manager starts for the trace to be
// recorded.
const maxReadyAge = 10 * time.Minute

// ProvisioningRecorder exports the provisioning of each Machine as a trace. It is a Runnable of the manager, which adds
// it if tracing is enabled, and runs only on the leader.
type ProvisioningRecorder struct {
	Cache  cache.Cache
	Tracer trace.Tracer
	// Now is the clock. If it is nil, time.Now is used.
	Now func() time.Time

	mu sync.Mutex
	// recorded contains the Machines whose trace needs no further recording, because they were Ready before.
	recorded map[types.UID]bool
}

// Start implements manager.Runnable. It watches Machines until ctx is done.
func (r *ProvisioningRecorder) Start(ctx context.Context) error {
	informer, err := r.Cache.GetInformer(ctx, &clusterv1.Machine{})
	if err != nil {
		return fmt.Errorf("watching Machines: %w", err)
	}
	handle, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { r.recordIfReady(ctx, o, maxReadyAge) },
		UpdateFunc: func(_, after any) { r.recordIfReady(ctx, after, 0) },
		DeleteFunc: r.forget,
	})
	if err != nil {
		return fmt.Errorf("watching Machines: %w", err)
	}
	<-ctx.Done()
	return informer.RemoveEventHandler(handle)
}

// recordIfReady records the trace of a Machine when it is Ready for the first time. A Machine that is already Ready
// when this process first observes it is recorded only if it became Ready within the limit; zero means no limit.
func (r *ProvisioningRecorder) recordIfReady(ctx context.Context, o any, limit time.Duration) {
	m, ok := o.(*clusterv1.Machine)
	if !ok {
		return
	}
	stages := provisioningStages(m)
	if len(stages) == 0 || !r.first(m.UID) {
		return
	}
	if limit == 0 || r.now().Sub(stages[0].End) < limit {
		r.Record(ctx, m)
	}
}

func (r *ProvisioningRecorder) first(machine types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.recorded[machine] {
		return false
	}
	if r.recorded == nil {
		r.recorded = map[types.UID]bool{}
	}
	r.recorded[machine] = true
	return true
}

func (r *ProvisioningRecorder) forget(o any) {
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	if m, ok := o.(*clusterv1.Machine); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.recorded, m.UID)
	}
}

// Record exports the trace of a Machine that is Ready.
func (r *ProvisioningRecorder) Record(ctx context.Context, m *clusterv1.Machine) {
	attributes := []attribute.KeyValue{
		attribute.String("k8s.namespace.name", m.Namespace), attribute.String("slipway.cluster", m.Spec.ClusterName),
		attribute.String("slipway.machine", m.Name), attribute.String("k8s.node.name", m.Status.NodeRef.Name),
	}
	within := trace.ContextWithRemoteSpanContext(ctx, rootOf(m.UID))
	for i, stage := range provisioningStages(m) {
		parent := within
		if i == 0 {
			parent = trace.ContextWithSpanContext(ctx, trace.SpanContext{}) // the root span has no parent
		}
		_, span := r.Tracer.Start(withID(parent, m.UID, stage.Name), stage.Name,
			trace.WithTimestamp(stage.Start), trace.WithAttributes(attributes...))
		span.End(trace.WithTimestamp(stage.End))
	}
}

func (r *ProvisioningRecorder) now() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}

// spanIDs holds the IDs for the next span that is started with a context.
type spanIDs struct {
	trace trace.TraceID
	span  trace.SpanID
}

type wantedKey struct{}

func withID(ctx context.Context, machine types.UID, stage string) context.Context {
	return context.WithValue(ctx, wantedKey{}, spanIDs{trace: traceID(machine), span: spanID(machine, stage)})
}

// TraceIDGenerator generates the IDs of a [ProvisioningRecorder]'s spans and random IDs for all other spans. The tracer
// provider must be configured with it. The manager configures it (manager/tracing.go).
type TraceIDGenerator struct{}

var _ sdktrace.IDGenerator = TraceIDGenerator{}

// NewIDs implements sdktrace.IDGenerator.
func (TraceIDGenerator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if w, ok := ctx.Value(wantedKey{}).(spanIDs); ok {
		return w.trace, w.span
	}
	var t trace.TraceID
	_, _ = rand.Read(t[:]) // never fails
	return t, randomSpan()
}

// NewSpanID implements sdktrace.IDGenerator.
func (TraceIDGenerator) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if w, ok := ctx.Value(wantedKey{}).(spanIDs); ok {
		return w.span
	}
	return randomSpan()
}

func randomSpan() trace.SpanID {
	var s trace.SpanID
	_, _ = rand.Read(s[:]) // never fails
	return s
}

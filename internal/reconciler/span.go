package reconciler

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// span starts the span of a reconciliation in the trace of the Machine that the object is or belongs to.
func (r *Reconciler[O, S]) span(ctx context.Context, o O) (context.Context, trace.Span) {
	if r.tracer == nil {
		return ctx, nil
	}
	return r.tracer.Start(withMachineTrace(ctx, o), "reconcile "+r.Name, trace.WithAttributes(
		attribute.String("slipway.controller", r.Name),
		attribute.String("k8s.namespace.name", o.GetNamespace()), attribute.String("slipway.object.name", o.GetName()),
	))
}

// finish ends the span of a reconciliation and adds the plan and the error as attributes.
func finish(span trace.Span, p Plan, err error) {
	if span == nil {
		return
	}
	span.SetAttributes(attribute.StringSlice("slipway.actions", texts(p.Actions)), attribute.StringSlice("slipway.waits", texts(p.Waits)))
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

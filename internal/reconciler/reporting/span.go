package reporting

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Span is the span of one reconciliation, which the driver starts and ends. The zero value records nothing.
type Span struct{ span trace.Span }

// StartSpan starts the span of a reconciliation in the trace of the Machine that the object is or belongs to. If the
// tracer is nil, nothing is recorded. The driver calls it at the start of each reconciliation.
func StartSpan(ctx context.Context, tracer trace.Tracer, controller string, o metav1.Object) (context.Context, Span) {
	if tracer == nil {
		return ctx, Span{}
	}
	ctx, span := tracer.Start(withMachineTrace(ctx, o), "reconcile "+controller, trace.WithAttributes(
		attribute.String("slipway.controller", controller),
		attribute.String("k8s.namespace.name", o.GetNamespace()), attribute.String("slipway.object.name", o.GetName()),
	))
	return ctx, Span{span}
}

// End ends the span and adds the planned actions, the waits and the error as attributes.
func (s Span) End(actions, waits []string, err error) {
	if s.span == nil {
		return
	}
	s.span.SetAttributes(attribute.StringSlice("slipway.actions", actions), attribute.StringSlice("slipway.waits", waits))
	if err != nil {
		s.span.RecordError(err)
		s.span.SetStatus(codes.Error, err.Error())
	}
	s.span.End()
}

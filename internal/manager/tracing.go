package manager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/reconciler/reporting"
)

// flushTimeout limits the export of the last spans on shutdown.
const flushTimeout = 5 * time.Second

// scope is the instrumentation scope of the spans.
const scope = "github.com/slipwayhq/slipway"

// tracing returns an OTLP trace provider for the controllers, configured by the OTEL_* environment variables of
// OpenTelemetry, or nil if tracing is disabled. newParts calls it, and then addTracing, before the controllers are
// added.
func tracing(ctx context.Context, cfg Config) (*sdktrace.TracerProvider, error) {
	if !cfg.Tracing && os.Getenv("OTEL_TRACES_EXPORTER") != "otlp" {
		return nil, nil
	}
	exporter := cfg.SpanExporter
	if exporter == nil {
		var err error
		if exporter, err = otlptracegrpc.New(ctx); err != nil {
			return nil, fmt.Errorf("preparing to send traces: %w", err)
		}
	}
	about, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", "slipway"), attribute.String("service.version", buildinfo.Version()),
	), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("reading OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter), sdktrace.WithResource(about), sdktrace.WithIDGenerator(reporting.TraceIDGenerator{}),
	), nil
}

// addTracing records the provisioning of Machines if this manager reconciles them, and flushes spans on
// shutdown. It returns the tracer for the controllers. newParts calls it before the controllers are added.
func addTracing(mgr manager.Manager, provider *sdktrace.TracerProvider, machines bool) (trace.Tracer, error) {
	if provider == nil {
		return nil, nil
	}
	tracer := provider.Tracer(scope, trace.WithInstrumentationVersion(buildinfo.Version()))
	if machines {
		if err := mgr.Add(&reporting.ProvisioningRecorder{Cache: mgr.GetCache(), Tracer: tracer}); err != nil {
			return nil, err
		}
	}
	return tracer, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		if err := provider.Shutdown(end); err != nil {
			mgr.GetLogger().Info("sending the last traces failed", "error", err.Error())
		}
		return nil
	}))
}

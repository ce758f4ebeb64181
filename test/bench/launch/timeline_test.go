package launch

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// What an exporter sends arrives, and becomes rows: controllers as they begin, then Machines with their stages.
func TestFromExporterToPicture(t *testing.T) {
	r := newReceiver(t.Context())
	t.Cleanup(r.server.Stop)
	exporter, err := otlptracegrpc.New(t.Context(), otlptracegrpc.WithEndpointURL(r.endpoint))
	if err != nil {
		t.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	began := time.Unix(1e9, 0)
	record := func(name, object string, from, to int) {
		_, s := provider.Tracer("test").Start(t.Context(), name, trace.WithNewRoot(), trace.WithTimestamp(began.Add(time.Duration(from)*time.Second)),
			trace.WithAttributes(attribute.String("slipway.object.name", object)))
		s.End(trace.WithTimestamp(began.Add(time.Duration(to) * time.Second)))
	}
	record("reconcile machine", "m", 3, 4)
	record("reconcile cluster", "<c>", 1, 2)
	record("reconcile cluster", "before", -9, -8)
	record("infrastructure", "", 4, 8)
	record("bootstrap data", "", 4, 4)
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows := r.rows(began)
	want := []row{
		{"cluster", []bar{{1, 2, 0, "<c>"}}}, {"machine", []bar{{3, 4, 0, "m"}}}, {"Machine 1", []bar{{4, 8, 2, "infrastructure"}}},
	}
	if diff := cmp.Diff(want, rows, cmp.AllowUnexported(row{}, bar{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	out := drawTimeline("a title", rows)
	for _, part := range []string{"<title>&lt;c&gt; 1.00 s to 2.00 s</title>", ">Machine 1</text>", `class="c2" x="540.000000"`, ">seconds</text>"} {
		if !strings.Contains(out, part) {
			t.Errorf("no %s in\n%s", part, out)
		}
	}
}

package launch

import (
	"cmp"
	"context"
	"fmt"
	"html"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"

	"github.com/slipwayhq/slipway/internal/reconciler/reporting"
	"github.com/slipwayhq/slipway/test/bench/harness"
)

// exportInterval is the time between two exports of spans by the manager.
const exportInterval = 500 * time.Millisecond

type timeline struct {
	harness.Options
	workers int
}

func TimelineCommand() *cobra.Command {
	t := &timeline{}
	cmd := t.Command("timeline", "draw the stages of the creation of real nodes, from the manager's traces", "timeline.svg", t.run)
	cmd.Flags().IntVar(&t.workers, "workers", 2, "nodes of the cluster")
	return cmd
}

func (t *timeline) run(ctx context.Context) {
	r := newReceiver(ctx)
	defer r.server.Stop()
	harness.WithInstallation(ctx, t.Binary, func(in *harness.Installation) {
		in.Up(ctx)
		start := time.Now()
		out := in.Run(ctx, "create", "cluster", "timeline", "--workers", strconv.Itoa(t.workers), "--kubeconfig", in.Kubeconfig())
		harness.Sleep(ctx, 4*exportInterval)
		rows := r.rows(start)
		title := fmt.Sprintf("A cluster with %d real nodes: all there after %.1f s", t.workers, out.Seconds)
		fmt.Println(title)
		harness.WriteFile(t.Out, drawTimeline(title, rows))
	}, "OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_ENDPOINT="+r.endpoint, fmt.Sprintf("OTEL_BSP_SCHEDULE_DELAY=%d", exportInterval.Milliseconds()))
}

// span is the part of an OpenTelemetry span that the timeline shows.
type span struct {
	trace, name, object string // object is empty for stages of Machines
	start, end          time.Time
}

// receiver receives traces by OTLP over gRPC on the loopback interface.
type receiver struct {
	collector.UnimplementedTraceServiceServer
	endpoint string
	server   *grpc.Server

	mu    sync.Mutex
	spans []span
}

func newReceiver(ctx context.Context) *receiver {
	listener := harness.Must((&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0"))
	r := &receiver{endpoint: "http://" + listener.Addr().String(), server: grpc.NewServer()}
	collector.RegisterTraceServiceServer(r.server, r)
	go func() { _ = r.server.Serve(listener) }()
	return r
}

// Export implements collector.TraceServiceServer.
func (r *receiver) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				received := span{trace: string(s.TraceId), name: s.Name, start: time.Unix(0, int64(s.StartTimeUnixNano)), end: time.Unix(0, int64(s.EndTimeUnixNano))}
				for _, a := range s.Attributes {
					if a.Key == "slipway.object.name" {
						received.object = a.Value.GetStringValue()
					}
				}
				r.spans = append(r.spans, received)
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// rows returns the timeline of the spans that ended after start.
func (r *receiver) rows(start time.Time) []row {
	r.mu.Lock()
	defer r.mu.Unlock()
	return timelineRows(slices.DeleteFunc(slices.Clone(r.spans), func(s span) bool { return s.end.Before(start) }), start)
}

// row is a line of the timeline: a controller or a Machine.
type row struct {
	name string
	bars []bar
}

// bar is a span on a row, in seconds since the creation. Class 0 is a reconciliation, the others are stages.
type bar struct {
	from, to float64
	class    int
	text     string
}

// stages are the parts of a Machine's trace, in order.
func stages() []string {
	return []string{reporting.SpanBootstrapData, reporting.SpanInfrastructure, reporting.SpanNodeJoin, reporting.SpanFirstReady}
}

// timelineRows returns a row for each controller in the order of the first reconciliation, then one for each Machine.
func timelineRows(spans []span, start time.Time) []row {
	var controllers, machines []row
	index := map[string]int{}
	add := func(rows *[]row, key, name string, b bar) {
		if _, ok := index[key]; !ok {
			index[key] = len(*rows)
			*rows = append(*rows, row{name: name})
		}
		r := &(*rows)[index[key]]
		r.bars = append(r.bars, b)
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(a.start.Compare(b.start), a.end.Compare(b.end)) })
	for _, s := range spans {
		b := bar{from: max(0, s.start.Sub(start).Seconds()), to: max(0, s.end.Sub(start).Seconds())}
		stage := slices.Index(stages(), s.name)
		if controller, ok := strings.CutPrefix(s.name, "reconcile "); ok {
			b.text = s.object
			add(&controllers, "controller "+controller, controller, b)
		} else if stage >= 0 && s.end.After(s.start) {
			b.class, b.text = stage+1, s.name
			add(&machines, "machine "+s.trace, fmt.Sprintf("Machine %d", len(machines)+1), b)
		}
	}
	return append(controllers, machines...)
}

// Sizes in pixels.
const (
	timelineLeft, timelineWidth, timelineRight = 190, 700, 20
	timelineHead, rowHeight                    = 64, 22
)

// timelineStyle adapts to light and dark pages.
const timelineStyle = `text{font:12px sans-serif;fill:#555}.title{font-size:15px;font-weight:bold}.grid{stroke:#8884}.c0{fill:#888}` +
	`.c1{fill:#0b6bcb}.c2{fill:#d9822b}.c3{fill:#2e8540}.c4{fill:#8a4fbf}@media(prefers-color-scheme:dark){text{fill:#bbb}}`

// drawTimeline returns the rows as SVG.
func drawTimeline(title string, rows []row) string {
	last := 1.0
	for _, r := range rows {
		for _, b := range r.bars {
			last = max(last, b.to)
		}
	}
	x := func(at float64) float64 { return timelineLeft + timelineWidth*at/last }
	bottom := timelineHead + rowHeight*len(rows)
	var out strings.Builder
	add := func(format string, args ...any) { fmt.Fprintf(&out, format, args...) }
	add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img"><title>%s</title><style>%s</style>`,
		timelineLeft+timelineWidth+timelineRight, bottom+36, html.EscapeString(title), timelineStyle)
	add(`<text class="title" x="10" y="20">%s</text>`, html.EscapeString(title))
	legend := timelineLeft
	for i, name := range append([]string{"reconciliation"}, stages()...) {
		add(`<rect class="c%d" x="%d" y="34" width="10" height="10"/><text x="%d" y="43">%s</text>`, i, legend, legend+15, name)
		legend += 30 + 7*len(name)
	}
	for second := 0; float64(second) <= last; second++ {
		add(`<line class="grid" x1="%[1]f" y1="%[2]d" x2="%[1]f" y2="%[3]d"/><text x="%[1]f" y="%[4]d" text-anchor="middle">%[5]d</text>`,
			x(float64(second)), timelineHead-6, bottom, bottom+16, second)
	}
	add(`<text x="%d" y="%d">seconds</text>`, timelineLeft, bottom+32)
	for i, r := range rows {
		y := timelineHead + rowHeight*i
		add(`<text x="%d" y="%d" text-anchor="end">%s</text>`, timelineLeft-8, y+13, html.EscapeString(r.name))
		for _, b := range r.bars {
			add(`<rect class="c%d" x="%f" y="%d" width="%f" height="14"><title>%s %.2f s to %.2f s</title></rect>`,
				b.class, x(b.from), y+2, max(1.5, x(b.to)-x(b.from)), html.EscapeString(b.text), b.from, b.to)
		}
	}
	out.WriteString("</svg>\n")
	return out.String()
}

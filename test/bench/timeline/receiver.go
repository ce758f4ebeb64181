package main

import (
	"context"
	"net"
	"sync"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
)

// span is what the picture needs of one.
type span struct {
	trace, name string
	object      string // its name; empty for stages
	start, end  time.Time
}

// receiver takes traces by OTLP over gRPC, on loopback.
type receiver struct {
	collector.UnimplementedTraceServiceServer
	endpoint string
	server   *grpc.Server

	mu    sync.Mutex
	spans []span
}

func newReceiver(ctx context.Context) (*receiver, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{endpoint: "http://" + listener.Addr().String(), server: grpc.NewServer()}
	collector.RegisterTraceServiceServer(r.server, r)
	go func() { _ = r.server.Serve(listener) }()
	return r, nil
}

// Export implements collector.TraceServiceServer.
func (r *receiver) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				got := span{trace: string(s.TraceId), name: s.Name, start: time.Unix(0, int64(s.StartTimeUnixNano)), end: time.Unix(0, int64(s.EndTimeUnixNano))}
				for _, a := range s.Attributes {
					if a.Key == "slipway.object.name" {
						got.object = a.Value.GetStringValue()
					}
				}
				r.spans = append(r.spans, got)
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// received returns the spans of a cluster: those that began since, of objects that are its own.
func (r *receiver) received(since time.Time) []span {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []span
	for _, s := range r.spans {
		if !s.end.Before(since) {
			out = append(out, s)
		}
	}
	return out
}

package extension

import (
	"context"
	"net/http"
	"regexp"
	"strings"
)

// Trace is the trace context of a call, as sent by its caller (W3C Trace Context).
type Trace struct {
	// TraceID and ParentID are lower-case hexadecimal; ParentID is the caller's span.
	TraceID, ParentID string
	// Sampled means that the caller records the trace.
	Sampled bool

	parent, state string
}

// Headers of Trace Context.
const (
	traceParent = "Traceparent"
	traceState  = "Tracestate"
)

type traceKey struct{}

// TraceOf returns the trace of the call with the context ctx; false if the caller sent none.
func TraceOf(ctx context.Context) (Trace, bool) {
	t, ok := ctx.Value(traceKey{}).(Trace)
	return t, ok
}

// Inject adds the trace to the headers of a request by the handler, as a child of the caller's span. Tracing libraries
// do this themselves; see [Config.Propagate].
func (t Trace) Inject(header http.Header) {
	header.Set(traceParent, t.parent)
	if t.state != "" {
		header.Set(traceState, t.state)
	}
}

// traceParentPattern matches version, trace, parent and flags; later versions may append more fields.
var traceParentPattern = regexp.MustCompile(`^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$`)

// maxTraceState is the maximum length of a tracestate to forward.
const maxTraceState = 512

// traceIn parses the trace context in headers.
func traceIn(header http.Header) (Trace, bool) {
	parts := traceParentPattern.FindStringSubmatch(header.Get(traceParent))
	switch {
	case parts == nil, parts[1] == "ff", parts[1] == "00" && parts[5] != "":
		return Trace{}, false
	case strings.Trim(parts[2], "0") == "", strings.Trim(parts[3], "0") == "":
		return Trace{}, false
	}
	t := Trace{
		TraceID: parts[2], ParentID: parts[3], Sampled: strings.ContainsAny(parts[4][1:], "13579bdf"),
		parent: "00-" + parts[2] + "-" + parts[3] + "-" + parts[4],
	}
	if state := strings.Join(header.Values(traceState), ","); len(state) <= maxTraceState {
		t.state = state
	}
	return t, true
}

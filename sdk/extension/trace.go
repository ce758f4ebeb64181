package extension

import (
	"context"
	"net/http"
	"regexp"
	"strings"
)

// Trace is the trace that a call belongs to, as its caller says (W3C Trace Context).
type Trace struct {
	// TraceID and ParentID are lower case hexadecimal; ParentID is the caller's span.
	TraceID, ParentID string
	// Sampled says that the caller records the trace.
	Sampled bool

	parent, state string
}

// Headers of Trace Context.
const (
	traceParent = "Traceparent"
	traceState  = "Tracestate"
)

type traceKey struct{}

// TraceOf returns the trace of the call that ctx belongs to; false where the caller names none.
func TraceOf(ctx context.Context) (Trace, bool) {
	t, ok := ctx.Value(traceKey{}).(Trace)
	return t, ok
}

// Inject adds the trace to the headers of a request that the handler sends, as a child of the caller's span. A library of
// traces does that by itself, see [Config.Propagate].
func (t Trace) Inject(header http.Header) {
	header.Set(traceParent, t.parent)
	if t.state != "" {
		header.Set(traceState, t.state)
	}
}

// traceParentPattern is version, trace, parent and flags; later versions may have more after a dash.
var traceParentPattern = regexp.MustCompile(`^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$`)

// maxTraceState is how much of tracestate is passed on.
const maxTraceState = 512

// traceIn reads the trace that headers name.
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

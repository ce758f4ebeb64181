package workload

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Reasons of the faults for rejected responses.
const (
	// reasonTooLarge means that the response exceeds the limits.
	reasonTooLarge = "AnswerTooLarge"
	// reasonForm means that the response has a content type that was not requested.
	reasonForm = "AnswerInOtherForm"
)

// responseLimits for one response, and for one event of a watch.
type responseLimits struct {
	// Bytes is the maximum size, uncompressed.
	Bytes int64
	// Memory is the maximum estimated size once it is decoded.
	Memory int64
}

// defaultLimits returns the limits for the API server of a workload cluster.
func defaultLimits() responseLimits { return responseLimits{Bytes: 64 << 20, Memory: 512 << 20} }

const (
	// chargeStep is the increment, in bytes, by which a document is charged.
	chargeStep = 64 << 10
	// A response that exceeds noteworthyBytes, or uses more memory than noteworthyMemory, is recorded while it is
	// decoded.
	noteworthyBytes, noteworthyMemory = 1 << 20, 8 << 20
)

// DecodingMemory records a response that is being decoded, for analysis after a crash. [Crashes] returns it, and
// [limitingTransport] calls it for large responses.
type DecodingMemory interface {
	// Weigh records the current memory estimate of the response.
	Weigh(bytes int64)
	// End is called when the response has been decoded.
	End()
}

// limitingTransport limits the memory of responses from one cluster. Each connection has one. In the chain of
// transports, it belongs between decompression and decoding.
type limitingTransport struct {
	Next    http.RoundTripper
	Limits  responseLimits
	Account *memoryAccount
	// Decoding, if set, is called when a response turns out to be large.
	Decoding func() DecodingMemory
	// Refused, if set, is called with the fault of a rejected response.
	Refused func(error)
}

func (t *limitingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.Next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	// client-go would block a worker for the time in this header. Controllers retry on their own.
	resp.Header.Del("Retry-After")
	stream := isWatch(r) && resp.StatusCode == http.StatusOK
	m := newMeter(resp.Header.Get("Content-Type"), stream)
	if m == nil {
		_ = resp.Body.Close()
		return nil, t.refuse(fault.New(fault.Unreachable, reasonForm, "the API server of the workload cluster sends neither JSON nor protobuf"))
	}
	b := &body{ReadCloser: resp.Body, transport: t, meter: m, call: callOf(r.Context()), current: &document{}}
	b.counting.tally = &b.current.tally
	if stream {
		b.counting.next = b.nextDocument
	}
	resp.Body = b
	return resp, nil
}

func (t *limitingTransport) refuse(f *fault.Fault) error {
	if t.Refused != nil {
		t.Refused(f)
	}
	return f
}

// document is a response, or an event of a watch.
type document struct {
	tally
	charged  int64
	decoding DecodingMemory
}

// body is a response body that fails when it exceeds a limit. While a watch is read, the decoder may still use the
// event before the current one.
type body struct {
	io.ReadCloser
	transport *limitingTransport
	call      *call

	mu                sync.Mutex
	meter             meter
	counting          counting
	current, previous *document
	failed            error
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed != nil {
		return 0, b.failed
	}
	// Feed small parts, so that a single large read is not counted completely before a limit takes effect in its
	// middle.
	for rest := p[:n]; len(rest) > 0; {
		part := rest[:min(len(rest), 4<<10)]
		rest = rest[len(part):]
		b.meter.feed(part, &b.counting)
		if b.failed = b.settle(); b.failed != nil {
			b.finish()
			return 0, b.failed
		}
	}
	return n, err
}

// settle charges the part of the current document that has been read.
func (b *body) settle() error {
	d, limits := b.current, b.transport.Limits
	if d.bytes > limits.Bytes || d.memory > limits.Memory {
		return b.transport.refuse(fault.New(fault.Unreachable, reasonTooLarge,
			"the API server of the workload cluster sent a response that exceeds %d MiB, or %d MiB of memory when decoded",
			limits.Bytes>>20, limits.Memory>>20))
	}
	if more := d.memory - d.charged; more >= chargeStep {
		if err := b.transport.Account.charge(more); err != nil {
			return b.transport.refuse(fault.As(err))
		}
		d.charged = d.memory
		if d.decoding != nil {
			d.decoding.Weigh(d.memory)
		}
	}
	if d.decoding == nil && b.transport.Decoding != nil && (d.bytes > noteworthyBytes || d.memory > noteworthyMemory) {
		d.decoding = b.transport.Decoding()
		d.decoding.Weigh(d.memory)
	}
	return nil
}

// nextDocument is called when the next event of a watch starts.
func (b *body) nextDocument() {
	b.transport.end(b.previous)
	b.previous, b.current = b.current, &document{}
	b.counting.tally = &b.current.tally
}

// Close implements io.Closer. In a call started with [beginResponse], the response is decoded only after Close.
func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed == nil && b.call.hold(b.transport, b.current) {
		b.current = nil
	}
	b.finish()
	return err
}

func (b *body) finish() {
	b.transport.end(b.previous)
	b.transport.end(b.current)
	b.previous, b.current = nil, &document{}
	b.counting.tally = &b.current.tally
}

// end releases the memory of a document.
func (t *limitingTransport) end(d *document) {
	if d == nil {
		return
	}
	if d.charged > 0 {
		t.Account.release(d.charged)
	}
	if d.decoding != nil {
		d.decoding.End()
	}
	d.charged, d.decoding = 0, nil
}

// call is a client call, from its start until its response has been decoded.
type call struct {
	mu    sync.Mutex
	ended bool
	held  []func()
}

type callKey struct{}

// beginResponse returns a context for a call. The response is charged until end is called.
func beginResponse(ctx context.Context) (of context.Context, end func()) {
	c := &call{}
	return context.WithValue(ctx, callKey{}, c), c.end
}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// hold defers the release of a document until the call ends. It reports whether it did.
func (c *call) hold(t *limitingTransport, d *document) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || d.charged == 0 && d.decoding == nil {
		return false
	}
	c.held = append(c.held, func() { t.end(d) })
	return true
}

func (c *call) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for _, release := range c.held {
		release()
	}
	c.held = nil
}

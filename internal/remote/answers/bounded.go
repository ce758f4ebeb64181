package answers

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Reasons of the faults for answers that are not read.
const (
	// ReasonTooLarge is the reason for an answer beyond the limits.
	ReasonTooLarge = "AnswerTooLarge"
	// ReasonForm is the reason for an answer in a form that was not requested.
	ReasonForm = "AnswerInOtherForm"
)

// Limits of one answer, and of one event of a watch.
type Limits struct {
	// Bytes of it, unpacked.
	Bytes int64
	// Memory is what it is estimated to take once it is decoded.
	Memory int64
}

// DefaultLimits are those for the API of a workload cluster.
func DefaultLimits() Limits { return Limits{Bytes: 64 << 20, Memory: 512 << 20} }

const (
	// step is the memory after which a document is charged further.
	step = 64 << 10
	// An answer of more than noteworthyBytes, or that takes more than noteworthyMemory, is reported while it is decoded.
	noteworthyBytes, noteworthyMemory = 1 << 20, 8 << 20
)

// Decoding is the record of an answer that is being decoded, for the time after a crash.
type Decoding interface {
	// Weigh records what the answer is estimated to take in memory so far.
	Weigh(bytes int64)
	// End is called when the answer has been decoded.
	End()
}

// Transport bounds the answers of one cluster. It belongs between what unpacks answers and what decodes them.
type Transport struct {
	Next    http.RoundTripper
	Limits  Limits
	Account *Account
	// Decoding, where set, is called when an answer turns out to be a large one.
	Decoding func() Decoding
	// Refused, where set, is called with the fault of an answer that is not read.
	Refused func(error)
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.Next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	// Clients wait for as long as the header says, with a worker of a controller. Controllers retry by themselves.
	resp.Header.Del("Retry-After")
	stream := isWatch(r) && resp.StatusCode == http.StatusOK
	m := newMeter(resp.Header.Get("Content-Type"), stream)
	if m == nil {
		_ = resp.Body.Close()
		return nil, t.refuse(fault.New(fault.Unreachable, ReasonForm, "the API server of the workload cluster sends neither JSON nor protobuf"))
	}
	b := &body{ReadCloser: resp.Body, transport: t, meter: m, call: callOf(r.Context()), current: &document{}}
	b.counting.tally = &b.current.tally
	if stream {
		b.counting.next = b.nextDocument
	}
	resp.Body = b
	return resp, nil
}

func (t *Transport) refuse(f *fault.Fault) error {
	if t.Refused != nil {
		t.Refused(f)
	}
	return f
}

// document is an answer, or an event of a watch.
type document struct {
	tally
	charged  int64
	decoding Decoding
}

// body is an answer that ends with a fault beyond the limits. Of a watch, the event before the current one may still be in the
// hands of the decoder.
type body struct {
	io.ReadCloser
	transport *Transport
	call      *call

	mu                sync.Mutex
	meter             meter
	counting          counting
	current, previous *document
	failed            error
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed != nil {
		return 0, b.failed
	}
	// In small parts: one read must not count as a whole what becomes too much in its middle.
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

// settle charges what was read of the current document.
func (b *body) settle() error {
	d, limits := b.current, b.transport.Limits
	if d.bytes > limits.Bytes || d.memory > limits.Memory {
		return b.transport.refuse(fault.New(fault.Unreachable, ReasonTooLarge,
			"the API server of the workload cluster sends more at once than is read: %d MiB, or what takes %d MiB of memory",
			limits.Bytes>>20, limits.Memory>>20))
	}
	if more := d.memory - d.charged; more >= step {
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

// nextDocument is called when another event of a watch begins.
func (b *body) nextDocument() {
	b.transport.end(b.previous)
	b.previous, b.current = b.current, &document{}
	b.counting.tally = &b.current.tally
}

// Close implements io.Closer. Within a call that [Begin] began, what was read is decoded only afterwards.
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

// end gives back what a document took.
func (t *Transport) end(d *document) {
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

// call is one of a client until it has decoded its answer.
type call struct {
	mu    sync.Mutex
	ended bool
	held  []func()
}

type callKey struct{}

// Begin returns a context for a call. Its answer is charged until end is called.
func Begin(ctx context.Context) (of context.Context, end func()) {
	c := &call{}
	return context.WithValue(ctx, callKey{}, c), c.end
}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// hold takes a document over until the call ends, and reports whether it did.
func (c *call) hold(t *Transport, d *document) bool {
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

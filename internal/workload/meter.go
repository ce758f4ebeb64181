package workload

import (
	"mime"
	"strings"
)

// Estimated memory of decoded values, in bytes, for the largest types that controllers read. The estimates are high for
// ordinary objects, and not much too low for objects crafted to be expensive.
const (
	// perByte covers the buffers into which a response is read, and the strings that are copied from them.
	perByte = 3
	// perDocument covers the root object of a document.
	perDocument = 2 << 10
	// perItem covers an object in a list: an empty Pod takes 1.3 KiB.
	perItem = 1536
	// perElement covers a value in an array of another object: an empty Container takes 432 bytes.
	perElement = 448
	// perObject covers a JSON object, which may become a map, and perField one of its fields.
	perObject, perField = 224, 96
	// perMessage covers the first string or message with a given field number in a protobuf message, and perNumber a
	// numeric field.
	perMessage, perNumber = 128, 16
)

// tally holds the totals of one document.
type tally struct {
	bytes, memory int64
}

// counting holds the totals of the document that is being read.
type counting struct {
	*tally
	// next, if set, is called before each document of a stream, and replaces the tally.
	next func()
}

func (c *counting) begin() {
	if c.next != nil {
		c.next()
	}
	c.memory += perDocument
}

// meter estimates the memory of the documents in a response of a workload cluster, which [limitingTransport] feeds to
// it in parts. Such an API server is not trusted: small documents can take much memory when they are decoded. A meter
// counts at least everything that a decoder would decode.
type meter interface {
	feed(part []byte, c *counting)
}

const (
	mediaJSON     = "application/json"
	mediaProtobuf = "application/vnd.kubernetes.protobuf"
)

// newMeter returns the meter for a content type, or nil for a type that clients decode although they never request it.
// [limitingTransport] rejects the response then. Clients decode a response without a usable content type as the type
// that they requested, and such a watch as JSON.
func newMeter(contentType string, stream bool) meter {
	media, _, err := mime.ParseMediaType(contentType)
	switch {
	case stream && (err != nil || media == mediaJSON):
		return &jsonMeter{stream: true}
	case stream && media == mediaProtobuf:
		return &frameMeter{}
	case stream:
		return nil
	case err != nil:
		return &maxMeter{first: &jsonMeter{}, second: newProtobufMeter(wholeResponse)}
	case media == mediaProtobuf:
		return newProtobufMeter(wholeResponse)
	case strings.HasSuffix(media, "yaml"), strings.HasSuffix(media, "cbor"), strings.HasSuffix(media, "cbor-seq"):
		return nil
	}
	return &jsonMeter{}
}

// maxMeter returns the larger of the estimates of two meters for the same document.
type maxMeter struct {
	first, second meter
	a, b          tally
}

func (w *maxMeter) feed(part []byte, c *counting) {
	before := max(w.a.memory, w.b.memory)
	w.first.feed(part, &counting{tally: &w.a})
	w.second.feed(part, &counting{tally: &w.b})
	c.bytes = w.a.bytes
	c.memory += max(w.a.memory, w.b.memory) - before
}

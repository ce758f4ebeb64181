package answers

import (
	"mime"
	"strings"
)

// What values take in memory once they are decoded, in bytes, for the largest types that controllers read. The estimates are
// high for ordinary objects, and not much too low for those that are made to be expensive.
const (
	// perByte is for the buffers that an answer is read into, and the strings that are copied from it.
	perByte = 3
	// perDocument is for the object that a document is.
	perDocument = 2 << 10
	// perItem is for an object in a list: a Pod without content takes 1.3 KiB.
	perItem = 1536
	// perElement is for a value in an array of another object: a Container without content takes 432 bytes.
	perElement = 448
	// perObject is for an object of JSON, which may become a map, and perField for one of its fields.
	perObject, perField = 224, 96
	// perMessage is for the first text or message of its number in a message of protobuf, and perNumber for a number there.
	perMessage, perNumber = 128, 16
)

// tally is what was counted of one document.
type tally struct {
	bytes, memory int64
}

// counting is the tally of the document that is being read.
type counting struct {
	*tally
	// next, where set, is called before each document of a stream, and replaces the tally.
	next func()
}

func (c *counting) begin() {
	if c.next != nil {
		c.next()
	}
	c.memory += perDocument
}

// meter estimates what the documents of an answer take in memory. It reads what decoders read, or counts more.
type meter interface {
	feed(part []byte, c *counting)
}

const (
	mediaJSON     = "application/json"
	mediaProtobuf = "application/vnd.kubernetes.protobuf"
)

// newMeter returns the meter for answers of a content type, or nil for a type that clients decode although they never
// request it. Clients decode an answer without a usable type as what they requested, and such a watch as JSON.
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
		return &widest{first: &jsonMeter{}, second: newProtobufMeter(wholeAnswer)}
	case media == mediaProtobuf:
		return newProtobufMeter(wholeAnswer)
	case strings.HasSuffix(media, "yaml"), strings.HasSuffix(media, "cbor"), strings.HasSuffix(media, "cbor-seq"):
		return nil
	}
	return &jsonMeter{}
}

// widest counts what the more expensive of two readings of one document counts.
type widest struct {
	first, second meter
	a, b          tally
}

func (w *widest) feed(part []byte, c *counting) {
	before := max(w.a.memory, w.b.memory)
	w.first.feed(part, &counting{tally: &w.a})
	w.second.feed(part, &counting{tally: &w.b})
	c.bytes = w.a.bytes
	c.memory += max(w.a.memory, w.b.memory) - before
}

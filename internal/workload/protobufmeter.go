package workload

import (
	"encoding/binary"
	"math"
)

const (
	// prefix is the length of the header before a message that has its kind: "k8s" and a zero byte.
	prefix = 4
	// nested is the number of message levels that are tracked. Deeper content is counted as elements of two bytes.
	nested = 64
	// maxNested is greater than the size of any response, whatever length a message claims.
	maxNested = 1 << 30
	// wholeResponse is the length of a message that ends with the response.
	wholeResponse = math.MaxUint64
)

// Wire types of protobuf, and field numbers in the messages that enclose an object: items of a list, object of a
// WatchEvent, raw of a RawExtension. Kubernetes defines both.
const (
	kindVarint, kindFixed64, kindBytes, kindGroup, kindGroupEnd, kindFixed32 = 0, 1, 2, 3, 4, 5

	itemsOfList, objectOfEvent, rawOfExtension = 2, 2, 1
)

// frameMeter is the [meter] of protobuf streams, as in a watch: frames, each of which is preceded by its length.
type frameMeter struct {
	header  [prefix]byte
	read    int
	left    uint64
	message *protobufMeter
}

func (m *frameMeter) feed(part []byte, c *counting) {
	for len(part) > 0 {
		if m.left > 0 {
			n := min(m.left, uint64(len(part)))
			m.message.feed(part[:n], c)
			part, m.left = part[n:], m.left-n
			continue
		}
		if m.read == 0 {
			c.begin()
		}
		m.header[m.read] = part[0]
		part, m.read = part[1:], m.read+1
		c.bytes, c.memory = c.bytes+1, c.memory+perByte
		if m.read == len(m.header) {
			m.left, m.read = uint64(binary.BigEndian.Uint32(m.header[:])), 0
			m.message = newProtobufMeter(m.left)
		}
	}
}

// protobufMeter is the [meter] of protobuf responses. It estimates one message without knowledge of its type: every
// field that may be a message is parsed as one, up to the first byte that is invalid in a message. At that byte a
// decoder of a message would fail; if the field is a string, counting of it ends. It must not count less than a decoder
// allocates, because its input is not trusted.
type protobufMeter struct {
	position, skip uint64
	messages       []message // innermost last
	event          bool      // in a stream, the message is an event that contains the object
	begun          bool

	next  expected
	value uint64
	shift uint
	field uint32
}

// message is a message that is being read.
type message struct {
	end  uint64
	seen uint64 // bitmap of the field numbers below 64
}

// expected is the next item in a message.
type expected int

const (
	tag expected = iota
	number
	length
)

// newProtobufMeter returns the meter for a whole response, or for an event of a stream with the given size.
func newProtobufMeter(size uint64) *protobufMeter {
	m := &protobufMeter{messages: []message{{end: size}}, event: size != wholeResponse}
	if !m.event {
		m.skip = prefix
	}
	return m
}

func (m *protobufMeter) feed(part []byte, c *counting) {
	if !m.begun && !m.event {
		c.begin()
	}
	m.begun = true
	c.bytes += int64(len(part))
	c.memory += perByte * int64(len(part))
	for len(part) > 0 {
		if m.position < m.skip {
			n := min(m.skip-m.position, uint64(len(part)))
			part, m.position = part[n:], m.position+n
			continue
		}
		for len(m.messages) > 1 && m.position >= m.inner().end {
			m.messages = m.messages[:len(m.messages)-1]
			m.expect(tag)
		}
		b := part[0]
		part, m.position = part[1:], m.position+1
		if m.shift > 63 {
			m.abandon()
			continue
		}
		m.value |= uint64(b&0x7f) << m.shift
		m.shift += 7
		if b&0x80 == 0 {
			m.take(m.value, c)
		}
	}
}

func (m *protobufMeter) inner() *message { return &m.messages[len(m.messages)-1] }

func (m *protobufMeter) expect(next expected) { m.next, m.value, m.shift = next, 0, 0 }

// abandon skips the rest of the innermost message, because it is not a valid message.
func (m *protobufMeter) abandon() {
	m.skip = m.inner().end
	m.expect(tag)
}

// take processes a complete varint: a tag, a value, or a length.
func (m *protobufMeter) take(value uint64, c *counting) {
	was := m.next
	m.expect(tag)
	switch {
	case was == length:
		m.enter(value, c)
	case was == tag:
		m.field = uint32(value >> 3)
		m.begin(value&7, c)
	}
}

func (m *protobufMeter) begin(kind uint64, c *counting) {
	switch kind {
	case kindBytes:
		m.expect(length)
		return
	case kindVarint:
		m.expect(number)
	case kindFixed64:
		m.pass(8)
	case kindFixed32:
		m.pass(4)
	case kindGroup, kindGroupEnd: // the fields of a group are counted as well
	default:
		m.abandon()
	}
	c.memory += perNumber
}

// pass skips n bytes of the innermost message.
func (m *protobufMeter) pass(n uint64) {
	if n > m.inner().end-m.position {
		m.abandon()
		return
	}
	m.skip = m.position + n
}

// enter parses a field of the given size as a message.
func (m *protobufMeter) enter(size uint64, c *counting) {
	in := m.inner()
	if size > in.end-m.position {
		m.abandon()
		return
	}
	bit := uint64(1) << (m.field & 63)
	switch {
	case !m.event && len(m.messages) == 2 && m.field == itemsOfList:
		c.memory += perItem
	case m.field > 63 || in.seen&bit != 0:
		c.memory += perElement
	default:
		c.memory += perMessage
	}
	in.seen |= bit
	switch {
	case size == 0:
	case len(m.messages) == nested:
		c.memory += int64(min(size, maxNested)/2) * perElement
		m.skip = m.position + size
	default:
		object := m.event && (len(m.messages) == 1 && m.field == objectOfEvent || len(m.messages) == 2 && m.field == rawOfExtension)
		m.messages = append(m.messages, message{end: m.position + size})
		if object && len(m.messages) == 3 {
			m.skip = min(m.position+prefix, m.inner().end)
		}
	}
}

package answers

import (
	"encoding/binary"
	"strings"
)

// counter counts the objects of an answer while it is read, so that no more are decoded than are allowed: an empty one
// takes two bytes of an answer, and a thousand in memory.
type counter interface {
	// feed returns how many more objects begin in the next part of the answer.
	feed(part []byte) int
}

func newCounter(contentType string, stream bool) counter {
	switch {
	case strings.Contains(contentType, "protobuf") && stream:
		return &frameCounter{}
	case strings.Contains(contentType, "protobuf"):
		return &protobufCounter{}
	}
	depth := 2 // the items of a list are in an array of an object
	if stream {
		depth = 0
	}
	return &jsonCounter{at: depth}
}

// jsonCounter counts the values at one depth of nesting: 0 are whole documents.
type jsonCounter struct {
	at, depth       int
	quoted, escaped bool
}

func (c *jsonCounter) feed(part []byte) (n int) {
	for _, b := range part {
		switch {
		case c.escaped:
			c.escaped = false
		case c.quoted:
			c.escaped, c.quoted = b == '\\', b != '"'
		case b == '"':
			c.quoted = true
		case b == '{' || b == '[':
			if c.depth == c.at {
				n++
			}
			c.depth++
		case b == '}' || b == ']':
			c.depth = max(c.depth-1, 0)
		}
	}
	return n
}

// frameCounter counts the frames of a stream, each of which has its length before it.
type frameCounter struct {
	header []byte
	left   uint32
}

func (c *frameCounter) feed(part []byte) (n int) {
	for len(part) > 0 {
		if c.left > 0 {
			skip := min(int(c.left), len(part))
			part, c.left = part[skip:], c.left-uint32(skip)
			continue
		}
		c.header, part = append(c.header, part[0]), part[1:]
		if len(c.header) == 4 {
			c.left, c.header = binary.BigEndian.Uint32(c.header), c.header[:0]
			n++
		}
	}
	return n
}

// protobufCounter counts the fields with number 2 of the message that an answer of Kubernetes wraps in its field 2: these
// are the items of every list.
type protobufCounter struct {
	magic  int  // bytes of the prefix that were seen
	inside bool // the wrapped message, whose end is that of the answer for all that matters here
	varint uint64
	shift  uint
	inTag  bool
	field  uint64
	kind   uint64
	left   uint64
}

const protobufMagic = 4 // bytes: "k8s" and zero

// Kinds of protobuf fields.
const (
	kindVarint, kindFixed64, kindBytes, kindFixed32 = 0, 1, 2, 5
	itemsField                                      = 2
)

func (c *protobufCounter) feed(part []byte) (n int) {
	for len(part) > 0 {
		switch {
		case c.magic < protobufMagic:
			c.magic, part, c.inTag = c.magic+1, part[1:], true
			continue
		case c.left > 0:
			skip := min(c.left, uint64(len(part)))
			part, c.left = part[skip:], c.left-skip
			continue
		}
		b := part[0]
		part = part[1:]
		c.varint |= uint64(b&0x7f) << min(c.shift, 63)
		c.shift += 7
		if b&0x80 != 0 {
			continue
		}
		value := c.varint
		c.varint, c.shift = 0, 0
		n += c.take(value)
	}
	return n
}

// take takes a whole number: a tag, the value of a field, or its length.
func (c *protobufCounter) take(value uint64) (n int) {
	if c.inTag {
		c.field, c.kind = value>>3, value&7
		switch c.kind {
		case kindFixed64:
			c.left = 8
		case kindFixed32:
			c.left = 4
		case kindVarint, kindBytes:
			c.inTag = false
		}
		return 0
	}
	c.inTag = true
	if c.kind != kindBytes {
		return 0
	}
	if c.field != itemsField {
		c.left = value
		return 0
	}
	if !c.inside { // go into the wrapped message
		c.inside = true
		return 0
	}
	c.left = value
	return 1
}

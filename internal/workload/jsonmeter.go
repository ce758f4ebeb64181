package workload

// maxDepth is the depth up to which a meter tracks nesting. JSON decoders reject more than 10,000 levels.
const maxDepth = 10_000

// jsonMeter is the [meter] of JSON responses: it estimates the memory that a decoder will need for each document. A
// stream is a sequence of documents, as in a watch. It must not count less than a decoder allocates, because its input
// is not trusted.
type jsonMeter struct {
	stream, begun   bool
	quoted, escaped bool
	// within holds the opening bracket of each level of nesting.
	within []byte
}

func (m *jsonMeter) feed(part []byte, c *counting) {
	for _, b := range part {
		if !m.begun && b > ' ' {
			m.begun = true
			c.begin()
		}
		c.bytes++
		c.memory += perByte
		m.read(b, c)
	}
}

// read processes one byte. Characters inside a string, including escaped ones, have no structural meaning.
func (m *jsonMeter) read(b byte, c *counting) {
	switch {
	case m.escaped:
		m.escaped = false
	case m.quoted:
		m.escaped, m.quoted = b == '\\', b != '"'
	case b == '"':
		m.quoted = true
	case b == '{':
		c.memory += perObject
		m.enter(b)
	case b == '[':
		m.enter(b)
		c.memory += m.element()
	case b == ',' && m.surrounding() == '[':
		c.memory += m.element()
	case b == ':':
		c.memory += perField
	case b == '}' || b == ']':
		m.within = m.within[:max(len(m.within)-1, 0)]
		m.begun = !m.stream || len(m.within) > 0
	}
}

func (m *jsonMeter) enter(b byte) {
	if len(m.within) < maxDepth {
		m.within = append(m.within, b)
	}
}

func (m *jsonMeter) surrounding() byte {
	if len(m.within) == 0 {
		return 0
	}
	return m.within[len(m.within)-1]
}

// element returns the memory of an element of the innermost array. The items of a list are in an array directly below
// the root object.
func (m *jsonMeter) element() int64 {
	if len(m.within) == 2 && !m.stream {
		return perItem
	}
	return perElement
}

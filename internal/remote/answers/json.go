package answers

// deepest is the depth up to which a meter knows what surrounds a value. Decoders of JSON refuse 10,000 levels.
const deepest = 10_000

// jsonMeter estimates documents in JSON. In a stream they follow each other.
type jsonMeter struct {
	stream, begun   bool
	quoted, escaped bool
	// within is, for each level, what surrounds the values there.
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

// read reads one byte. What follows a backslash in a text, and the text itself, has no structure.
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
	if len(m.within) < deepest {
		m.within = append(m.within, b)
	}
}

func (m *jsonMeter) surrounding() byte {
	if len(m.within) == 0 {
		return 0
	}
	return m.within[len(m.within)-1]
}

// element is what a value of the innermost array takes. The items of a list are in an array of its object.
func (m *jsonMeter) element() int64 {
	if len(m.within) == 2 && !m.stream {
		return perItem
	}
	return perElement
}

// Package visible shows text of others as text.
//
// Does: writes what a terminal would obey, such as the beginning of an escape sequence or a change of the direction of writing, as Go
// writes it in a string. Names, conditions, events and logs come from those who may write an object or run in a node, and could
// clear the screen of the person who reads them, or write there what nothing said.
//
// Never: changes what is not printed on a terminal.
//
// Read first: Text, Writer.
package visible

import (
	"io"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Text returns a text with nothing in it that a terminal obeys but ends of lines and tabs.
func Text(s string) string {
	if strings.IndexFunc(s, isObeyed) < 0 {
		return s
	}
	var out strings.Builder
	for _, r := range s {
		if isObeyed(r) {
			out.WriteString(shown(r))
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// isObeyed reports whether a terminal does something other than to show the character.
func isObeyed(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
}

func shown(r rune) string { return strings.Trim(strconv.QuoteRuneToASCII(r), "'") }

// Writer writes to a terminal what Text returns of all that it is given. Several goroutines may use it at the same time.
type Writer struct {
	to io.Writer

	mu sync.Mutex
	// begun is a character of which the rest has not come yet.
	begun []byte
}

// NewWriter returns a writer to a terminal.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// Write writes p, but for a character at its end that is not whole: that is written with its rest.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	in := append(w.begun, p...)
	out := make([]byte, 0, len(in))
	for len(in) > 0 && utf8.FullRune(in) {
		r, size := utf8.DecodeRune(in)
		if isObeyed(r) {
			out = append(out, shown(r)...)
		} else {
			out = append(out, in[:size]...)
		}
		in = in[size:]
	}
	w.begun = append([]byte(nil), in...)
	if _, err := w.to.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

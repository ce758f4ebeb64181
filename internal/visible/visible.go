// Package visible escapes characters that a terminal would interpret, such as the start of an escape sequence or a
// change of the text direction, as a Go string literal does. Names, conditions, events and logs come from users who may
// write an object or run code on a node; unescaped, they could clear the screen of a reader or show forged text. Use it
// only for terminal output.
package visible

import (
	"io"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Text returns s with all control characters escaped except newlines and tabs.
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

// isObeyed reports whether a terminal would interpret the character instead of showing it.
func isObeyed(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
}

func shown(r rune) string { return strings.Trim(strconv.QuoteRuneToASCII(r), "'") }

// Writer escapes text like [Text] and writes it to a terminal. It is safe for concurrent use.
type Writer struct {
	to io.Writer

	mu sync.Mutex
	// begun is the start of a character that has not arrived completely.
	begun []byte
}

// NewWriter returns a writer that escapes text and writes it to a terminal.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// Write writes p. If the last character is incomplete, Write buffers it until the rest arrives.
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

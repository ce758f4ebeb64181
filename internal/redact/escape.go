package redact

import (
	"io"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Escape returns s with all control characters escaped except newlines and tabs. Commands, package ui and the SSH
// provider apply it to text from objects and hosts before they show it.
func Escape(s string) string {
	if strings.IndexFunc(s, isControl) < 0 {
		return s
	}
	var out strings.Builder
	for _, r := range s {
		if isControl(r) {
			out.WriteString(escaped(r))
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// isControl reports whether a terminal would interpret the character instead of showing it.
func isControl(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
}

func escaped(r rune) string { return strings.Trim(strconv.QuoteRuneToASCII(r), "'") }

// EscapeWriter escapes text like [Escape] and writes it to a terminal. It is safe for concurrent use. The commands of
// Slipway use it for standard output and standard error if these are terminals. Logs of hosts always pass it.
type EscapeWriter struct {
	to io.Writer

	mu sync.Mutex
	// partialRune is the start of a character that has not arrived completely.
	partialRune []byte
}

// NewEscapeWriter returns a writer that escapes text and writes it to a terminal. Commands that show output of others
// call it.
func NewEscapeWriter(to io.Writer) *EscapeWriter { return &EscapeWriter{to: to} }

// Write writes p. If the last character is incomplete, Write buffers it until the rest arrives.
func (w *EscapeWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	in := append(w.partialRune, p...)
	out := make([]byte, 0, len(in))
	for len(in) > 0 && utf8.FullRune(in) {
		r, size := utf8.DecodeRune(in)
		if isControl(r) {
			out = append(out, escaped(r)...)
		} else {
			out = append(out, in[:size]...)
		}
		in = in[size:]
	}
	w.partialRune = append([]byte(nil), in...)
	if _, err := w.to.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Clip shortens a text to the given number of bytes, at a character boundary, and marks that it is shortened. Callers
// use it for text of others in messages, conditions and status fields. It does not remove secrets.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " …"
}

// ClipWords shortens a text like [Clip], but to whole words, so that [Mask] finds the secrets in the rest: a part of a
// secret has no form. Packages ui and mirror call it for values that are shown or stored in part.
func ClipWords(text string, most int) string {
	shown := Clip(text, most)
	if shown == text {
		return text
	}
	return shown[:strings.LastIndexAny(strings.TrimSuffix(shown, " …"), " \t\n")+1] + "…"
}

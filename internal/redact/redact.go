package redact

import (
	"regexp"
	"strings"
	"unicode"
)

// mask replaces secrets.
const mask = "***"

// margin is the number of bytes that are processed in addition to the requested size, because masking shortens the
// text.
const margin = 16 << 10

// colors matches the escape sequences for colors and cursor movement. They are removed whole, because without the
// control character the rest would appear as text.
var colors = regexp.MustCompile(`(?:\x1b\[|\x{9b})[0-9;:<=>?]*[ -/]*[@-~]`)

// Tail returns the last lines of a log, at most the given number of bytes, without secrets and control characters. The
// backends of hosted control planes, the Local provider and the SSH provider apply it to output. They do so before the
// output of a process, node or host becomes part of a status or an error.
func Tail(log string, most int) string {
	log, _ = maskForms(cutFront(log, most+margin))
	return strings.TrimSpace(cutFront(log, most))
}

// Mask masks the secrets in a text and reports whether it has any. A text without a secret remains as it is; one with a
// secret loses its control characters, too. The page of `slipway ui` applies it to the fields of objects.
func Mask(text string) (masked string, found bool) {
	if masked, found = maskForms(text); found {
		return masked, true
	}
	return text, false
}

// maskForms returns a text without control characters in which secrets are masked, and reports whether there is one.
func maskForms(text string) (masked string, found bool) {
	// Remove control characters before matching: between two parts of a secret, they would hide it from the
	// expressions.
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, colors.ReplaceAllString(strings.ToValidUTF8(text, "?"), ""))
	masked = hideKeys(text)
	for _, f := range forms {
		masked = f.ReplaceAllString(masked, "${1}"+mask+"${2}")
	}
	return masked, masked != text
}

// cutFront shortens a log that is too long by removing its beginning up to the end of a line, or of a word if it has
// only one line. A truncated secret would no longer have its recognizable form.
func cutFront(log string, most int) string {
	if len(log) <= most {
		return log
	}
	log = log[len(log)-most:]
	at := strings.IndexByte(log, '\n')
	if at < 0 {
		at = strings.IndexAny(log, " \t")
	}
	if at < 0 {
		return mask[:min(len(mask), most)]
	}
	return log[at+1:]
}

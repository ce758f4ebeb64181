package redact

import (
	"regexp"
	"strings"
	"unicode"
)

// mask stands for what is not shown.
const mask = "***"

// margin is how much more of a log is looked at than is shown, in bytes: masking makes it shorter.
const margin = 16 << 10

// colors are the sequences by which a terminal shows colors and moves its cursor: without the control character, their rest would be read as text.
var colors = regexp.MustCompile(`(?:\x1b\[|\x{9b})[0-9;:<=>?]*[ -/]*[@-~]`)

// Tail returns the last lines of a log, at most so many bytes, without secrets and without control characters.
func Tail(log string, most int) string {
	log = cutFront(log, most+margin)
	// Before anything is looked for: what is between two parts of a secret would hide it, and goes.
	log = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, colors.ReplaceAllString(strings.ToValidUTF8(log, "?"), ""))
	log = hideKeys(log)
	for _, f := range forms {
		log = f.ReplaceAllString(log, "${1}"+mask+"${2}")
	}
	return strings.TrimSpace(cutFront(log, most))
}

// cutFront leaves out the beginning of a log that is too long, up to the end of a line, else of a word: a part of a secret is not found
// by its form.
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

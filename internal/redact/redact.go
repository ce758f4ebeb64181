package redact

import (
	"regexp"
	"strings"
)

// secrets are what must not be shown: private keys, of which a log that was cut off has some lines, JSON web tokens, bootstrap tokens,
// certificate keys, and what is called a password or a token.
var secrets = regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\z)` +
	`|(?m:^[A-Za-z0-9+/]{60,}={0,2}$)` +
	`|\beyJ[\w-]+\.[\w-]+\.[\w-]*` +
	`|\b[a-z0-9]{6}\.[a-z0-9]{16}\b|\b[0-9a-f]{64}\b` +
	`|(?i:\b(?:password|passwd|secret|token|apikey|api_key)\s*[=:]\s*"?)[^\s"]+`)

// colors are the sequences by which a terminal shows colors and moves its cursor: without the control character, their rest would be read as text.
var colors = regexp.MustCompile(`\x1b\[[0-9;:<=>?]*[ -/]*[@-~]`)

// Tail returns the last lines of a log, at most so many bytes, without secrets and without control characters.
func Tail(log string, most int) string {
	if log == "" {
		return ""
	}
	// Before anything is looked for: what is between two parts of a secret would hide it, and goes.
	log = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, colors.ReplaceAllString(strings.ToValidUTF8(log, "?"), ""))
	log = secrets.ReplaceAllStringFunc(log, func(found string) string {
		if name, _, ok := strings.Cut(found, "="); ok && !strings.Contains(name, "\n") && len(name) < 20 {
			return name + "=***"
		}
		return "***"
	})
	if len(log) > most {
		log = strings.ToValidUTF8(log[len(log)-most:], "") // it may begin within a character
		if _, rest, ok := strings.Cut(log, "\n"); ok {
			log = rest
		}
	}
	return strings.TrimSpace(log)
}

package redact

import (
	"strings"
	"unicode"
)

const (
	// minSecretBytes is the minimum length of a secret that [MaskSecrets] masks, in bytes. Shorter strings are parts of
	// ordinary words.
	minSecretBytes = 6
	// minOpaqueBytes is the minimum length of a word that [FindOpaqueWords] returns, in bytes.
	minOpaqueBytes = 16
	// digitShare limits the number of characters per digit in an opaque word without upper-case letters. Generated
	// object names have fewer digits.
	digitShare = 8
)

// FindNamedSecrets returns the secrets in a text that have the form of a secret or are assigned to the name of one.
// References to variables are skipped. Package cloudinit applies it to bootstrap data, so that the LocalMachine
// controller can mask these secrets in the output of a node. The SSHMachine controller does the same for the output of
// a host.
func FindNamedSecrets(text string) []string {
	var out []string
	for _, key := range certificateKey.FindAllString(text, -1) {
		if !strings.HasPrefix(key, publicHash) {
			out = append(out, key)
		}
	}
	for _, f := range forms {
		for _, at := range f.FindAllStringSubmatchIndex(text, -1) {
			from, to := at[0], at[1]
			if len(at) > 2 && at[3] >= 0 {
				from = at[3]
			}
			if len(at) > 4 && at[4] >= 0 {
				to = at[4]
			}
			for line := range strings.Lines(text[from:to]) { // a private key has several lines
				if value := strings.Trim(line, " \t\r\n\"'\\,;)}]"); isValue(value) {
					out = append(out, value)
				}
			}
		}
	}
	return out
}

func isValue(word string) bool {
	return len(word) >= minSecretBytes && !strings.HasPrefix(word, "$") && !strings.HasPrefix(word, "-----") && !isPath(word)
}

// isPath reports whether a word is a file, a URL or an image. Base64 with slashes is not one, because it also contains
// upper-case letters.
func isPath(word string) bool {
	return strings.ContainsAny(word, "./") && strings.IndexFunc(word, unicode.IsUpper) < 0
}

// FindOpaqueWords returns all words in a text that appear to be generated: keys, tokens and identifiers. Package
// cloudinit applies it to files in bootstrap data that only their owner may read. Package ssh/machines applies it to
// bootstrap data in JSON, and [Public] to lines of trusted programs.
func FindOpaqueWords(text string) []string {
	var out []string
	text = certificateKey.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, publicHash) {
			return " "
		}
		return found
	})
	for _, word := range strings.FieldsFunc(text, isSeparator) {
		if isOpaque(word) {
			out = append(out, word)
		}
	}
	return out
}

func isSeparator(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune("\"'`,;:=@&|(){}[]<>\\", r)
}

func isOpaque(word string) bool {
	if len(word) < minOpaqueBytes || isPath(word) {
		return false
	}
	digits, letters, upper := 0, 0, false
	for _, r := range word {
		switch {
		case unicode.IsDigit(r):
			digits++
		case unicode.IsLetter(r):
			letters++
			upper = upper || unicode.IsUpper(r)
		}
	}
	return letters > 0 && digits > 0 && (upper || digits*digitShare >= len(word))
}

// MaskSecrets masks known secrets wherever they occur in a text. The LocalMachine controller applies it to what [Tail]
// returned, before it shows the output of a node in a condition. The SSHMachine controller calls it before [Tail], with
// the whole log. The cost does not grow for a secret that overlaps itself, because an attacker who controls both the
// data and the log could supply many of these.
func MaskSecrets(text string, secrets []string) string {
	hidden := make([]bool, len(text))
	for _, s := range secrets {
		if len(s) < minSecretBytes {
			continue
		}
		for from, marked := 0, 0; ; from++ {
			at := strings.Index(text[from:], s)
			if at < 0 {
				break
			}
			from += at
			for marked = max(marked, from); marked < from+len(s); marked++ {
				hidden[marked] = true
			}
		}
	}
	var b strings.Builder
	for i := range len(text) {
		switch {
		case !hidden[i]:
			b.WriteByte(text[i])
		case i == 0 || !hidden[i-1]:
			b.WriteString(mask)
		}
	}
	return b.String()
}

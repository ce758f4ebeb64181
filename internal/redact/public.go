package redact

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Public returns the last lines of a script's output, at most the given number of bytes, for users who may not read the
// data that the script was generated from. The container backend of the Local provider applies it to the output of a
// failed bootstrap, which appears in a condition of the LocalMachine.
//
// No list of secret forms is complete. Therefore Public works from an allowlist: words in the form of ordinary text are
// preserved, and everything else is masked, including the value of every variable, flag and field. A trace line of a
// shell (set -x) is reduced to the name of the program. Lines of kubeadm, of the kubelet and of Slipway contain no user
// data except names and addresses, so Public masks only the opaque words in the form in which [Tail] returns them.
func Public(log string, most int) string {
	log = Tail(log, most)
	var out []string
	for _, line := range strings.Split(log, "\n") {
		start := trustedLine.FindString(line)
		if start == "" {
			out = append(out, publicLine(line))
			continue
		}
		rest := line[len(start):]
		out = append(out, start+MaskSecrets(rest, FindOpaqueWords(rest)))
	}
	return cutFront(strings.Join(out, "\n"), most)
}

var (
	// trustedLine matches the start of lines written by kubeadm, by programs that log like Kubernetes, and by Slipway.
	trustedLine = regexp.MustCompile(`^\s*(?:\[[a-z-]+\] |\[(?:ERROR|WARNING) [\w./-]+\]: |To see the stack trace of this error execute with --v=|error execution phase [\w/-]+: |[IWEF]\d{4} [\d:.]+\s+\d+ [\w.-]+:\d+\] |slipway: )`)
	// tracedCommand matches a command that a shell traces before running it.
	tracedCommand = regexp.MustCompile(`^(\++ )(.*)$`)
	// pair matches a name and its value in one word.
	pair = regexp.MustCompile(`^([("']*-{0,2}[A-Za-z_][\w.-]{0,63}[:=]+)(.+)$`)
	// flag matches an option whose value may be the next word.
	flag = regexp.MustCompile(`^--?[A-Za-z][A-Za-z-]*$`)
	// field matches a line that consists of a name and its value.
	field = regexp.MustCompile(`^(\s*["']?[A-Za-z_][\w.-]*["']?:\s+)(\S+)\s*$`)
	// severity matches the start of a log message, which is not the name of a field.
	severity = regexp.MustCompile(`(?i)^\s*(?:error|warning|warn|fatal|info|note|debug|notice|e|w)\d*:`)
)

func publicLine(line string) string {
	if found := tracedCommand.FindStringSubmatch(line); found != nil {
		return found[1] + publicCommand(found[2])
	}
	if found := field.FindStringSubmatch(line); found != nil && !severity.MatchString(line) {
		return found[1] + mask
	}
	var b strings.Builder
	afterFlag := false
	for part := range fieldsAndSpaces(line) {
		switch {
		case strings.TrimSpace(part) == "":
			b.WriteString(part)
			continue
		case afterFlag && !strings.HasPrefix(part, "-"):
			b.WriteString(mask)
		default:
			b.WriteString(publicWord(part))
		}
		afterFlag = flag.MatchString(part)
	}
	return b.String()
}

// publicCommand returns the name of the program that a command runs, without its arguments.
func publicCommand(command string) string {
	words := strings.Fields(command)
	for n, word := range words {
		if strings.Contains(word, "=") {
			continue
		}
		name := publicWord(word)
		if n+1 < len(words) {
			name += " …"
		}
		return name
	}
	return mask
}

// fieldsAndSpaces yields the words of a line and the white space between them.
func fieldsAndSpaces(line string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for line != "" {
			first, _ := utf8.DecodeRuneInString(line)
			space := unicode.IsSpace(first)
			end := strings.IndexFunc(line, func(r rune) bool { return unicode.IsSpace(r) != space })
			if end < 0 {
				end = len(line)
			}
			if !yield(line[:end]) {
				return
			}
			line = line[end:]
		}
	}
}

// longestWord is the maximum length of a path segment that contains digits and still counts as a word.
const longestWord = 24

// ordinary matches words that describe a problem and are not secrets: words, numbers with units, versions, addresses,
// and public hashes.
var ordinary = []*regexp.Regexp{
	regexp.MustCompile(`^\pL{1,24}(?:[-_./'’]\pL{1,24})*$`),
	regexp.MustCompile(`^\w[\w-]{0,4}$`),
	regexp.MustCompile(`^[\d.,:/%+-]+(?:ns|ms|s|m|h|d|[KMGT]?i?B?)?$`),
	regexp.MustCompile(`^v?\d+(?:\.\d+){1,3}(?:-(?:alpha|beta|rc)[.\d]*)?$`),
	regexp.MustCompile(`^\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?:/\d+)?$`),
	regexp.MustCompile(`^sha256:[0-9a-f]{64}$`),
	regexp.MustCompile(`^(?:-|=|\*|#|\.|>|<|\||&|;|:|,|/|\+|~|\x60|…)+$`),
	regexp.MustCompile(`^(?:-[A-Za-z]|--[A-Za-z][A-Za-z-]*)$`),
}

var (
	location = regexp.MustCompile(`^(?:https?://(?:\d{1,3}(?:\.\d{1,3}){3}|\pL[\pL\d.-]*)(?::\d{1,5})?)?/[\w./+@:-]*$`)
	address  = regexp.MustCompile(`^https?://(?:\d{1,3}(?:\.\d{1,3}){3}|\pL[\pL\d.-]*)(?::\d{1,5})?$`)
)

// publicWord returns the word, or its masked form.
func publicWord(word string) string {
	if found := pair.FindStringSubmatch(word); found != nil && !strings.HasPrefix(found[2], "//") && !strings.HasPrefix(word, publicHash) {
		return found[1] + mask
	}
	bare := strings.TrimFunc(word, func(r rune) bool { return strings.ContainsRune("()[]{}\"'`,;:.!?…", r) })
	switch {
	case bare == "" || bare == mask:
		return word
	case location.MatchString(bare) || address.MatchString(bare):
		if isOpaquePath(bare) {
			return mask
		}
		return word
	}
	for _, form := range ordinary {
		if form.MatchString(bare) {
			return word
		}
	}
	return mask
}

// isOpaquePath reports whether a segment of a path looks like a key or a token.
func isOpaquePath(path string) bool {
	for _, part := range strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune("/:@", r) }) {
		if len(part) > longestWord && strings.IndexFunc(part, unicode.IsDigit) >= 0 || isOpaque(part) {
			return true
		}
	}
	return false
}

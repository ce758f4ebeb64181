package redact

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Public returns the last lines of what a script printed, at most so many bytes, for people who may not read what the script was made from.
//
// A list of the forms of secrets never ends, so that it is the other way round here: what has the form of ordinary text stays, everything else
// is masked, and so is every value of a variable, a flag or a field. A line with which a shell shows what it runs (set -x) keeps the name of
// the program. The lines of kubeadm, of the kubelet and of Slipway itself are made from no data of the user's but names and addresses, and
// stay as [Tail] leaves them, without opaque words.
func Public(log string, most int) string {
	log = Tail(log, most)
	var out []string
	for _, line := range strings.Split(log, "\n") {
		start := wellKnown.FindString(line)
		if start == "" {
			out = append(out, publicLine(line))
			continue
		}
		rest := line[len(start):]
		out = append(out, start+Hide(rest, Opaque(rest)))
	}
	return cutFront(strings.Join(out, "\n"), most)
}

var (
	// wellKnown is how the lines of kubeadm, of programs that log as Kubernetes does, and of Slipway begin.
	wellKnown = regexp.MustCompile(`^\s*(?:\[[a-z-]+\] |\[(?:ERROR|WARNING) [\w./-]+\]: |To see the stack trace of this error execute with --v=|error execution phase [\w/-]+: |[IWEF]\d{4} [\d:.]+\s+\d+ [\w.-]+:\d+\] |slipway: )`)
	// shown is a command that a shell shows before it runs it.
	shown = regexp.MustCompile(`^(\++ )(.*)$`)
	// pair is a name with its value in one word.
	pair = regexp.MustCompile(`^([("']*-{0,2}[A-Za-z_][\w.-]{0,63}[:=]+)(.+)$`)
	// flag is an option whose value may be the next word.
	flag = regexp.MustCompile(`^--?[A-Za-z][A-Za-z-]*$`)
	// field is a name alone with its value on a line.
	field = regexp.MustCompile(`^(\s*["']?[A-Za-z_][\w.-]*["']?:\s+)(\S+)\s*$`)
	// severity begins a message, and is no name of a field.
	severity = regexp.MustCompile(`(?i)^\s*(?:error|warning|warn|fatal|info|note|debug|notice|e|w)\d*:`)
)

func publicLine(line string) string {
	if found := shown.FindStringSubmatch(line); found != nil {
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

// publicCommand keeps the name of the program that a command runs.
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

// fieldsAndSpaces yields the words of a line and what is between them.
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

// longestWord is the length of the longest run of letters that is taken for a word.
const longestWord = 24

// ordinary are the forms of words that say what is wrong and are no secrets: words, numbers with units, versions, addresses, hashes that are
// public.
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

// publicWord returns the word, or what stands for it.
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

// isOpaquePath reports whether a part of a path looks like a key or a token.
func isOpaquePath(path string) bool {
	for _, part := range strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune("/:@", r) }) {
		if len(part) > longestWord && strings.IndexFunc(part, unicode.IsDigit) >= 0 || isOpaque(part) {
			return true
		}
	}
	return false
}

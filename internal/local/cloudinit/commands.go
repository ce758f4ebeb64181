package cloudinit

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readCommands joins the commands of the section bootcmd or runcmd into one script, so that variables and the working
// directory carry over from one command to the next. A string is a shell line; a list is a command with literal
// arguments, as in cloud-init. assemble calls it for [parse].
func readCommands(s section, prologue string) ([]step, error) {
	items, err := listOf(s.name, s.value)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	var commands []string
	for i, item := range items {
		line, err := commandLine(item)
		if err != nil {
			return nil, invalidFault("%s[%d] must be a string or a list of strings", s.name, i)
		}
		if line != "" {
			b.WriteString(line + "\n")
		}
		commands = append(commands, line)
	}
	if b.Len() == 0 {
		return nil, nil
	}
	script := &script{Text: prologue + b.String()}
	if !slices.ContainsFunc(commands, isFragment) {
		script.Commands, script.Prologue = commands, prologue
	}
	return []step{{Section: s.name, Script: script}}, nil
}

// shellWords matches the tokens that determine whether a command is complete: quotes, and words that open or close a
// compound command.
var shellWords = regexp.MustCompile(`'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^\s'"\\;&|]+|['"]|\\$|[;&|\n]`)

// isFragment reports whether a command may be incomplete without its neighbors, or may change how the shell continues
// after a failed command. In doubt, a command is a fragment. The script traces the commands of a section one by one
// only if none of them is a fragment.
func isFragment(command string) bool {
	if last := strings.TrimSpace(command); strings.HasSuffix(last, "&") || strings.HasSuffix(last, "|") {
		return true
	}
	open := 0
	for _, word := range shellWords.FindAllString(command, -1) {
		switch {
		case word == "'", word == `"`, word == `\`, strings.Contains(word, "<<") && !isQuoted(word), word == "set":
			return true
		case isQuoted(word):
		case slices.Contains([]string{"if", "case", "for", "while", "until", "{"}, word):
			open++
		case slices.Contains([]string{"fi", "esac", "done", "}"}, word):
			open--
		default:
			open += strings.Count(word, "(") - strings.Count(word, ")")
		}
	}
	return open != 0
}

func isQuoted(word string) bool { return len(word) > 1 && strings.ContainsAny(word[:1], `'"\`) }

func commandLine(item *yaml.Node) (string, error) {
	if item.Kind == yaml.AliasNode {
		item = item.Alias
	}
	switch {
	case isNull(item):
		return "", nil
	case item.Kind == yaml.ScalarNode:
		return item.Value, nil
	case item.Kind == yaml.SequenceNode:
		words := make([]string, 0, len(item.Content))
		for _, word := range item.Content {
			if word.Kind == yaml.AliasNode {
				word = word.Alias
			}
			if word.Kind != yaml.ScalarNode {
				return "", invalidFault("not a word")
			}
			words = append(words, quote(word.Value))
		}
		return strings.Join(words, " "), nil
	default:
		return "", invalidFault("not a command")
	}
}

// listOf returns the items of a sequence node.
func listOf(name string, n *yaml.Node) ([]*yaml.Node, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.SequenceNode {
		return nil, invalidFault("%s must be a list", name)
	}
	return n.Content, nil
}

// quote returns s as one word for a POSIX shell.
func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

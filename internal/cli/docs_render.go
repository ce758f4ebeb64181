package cli

import (
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

// style describes the output of [render].
type style struct {
	// Width is the width of the text in columns.
	Width int
	// Color marks headings and code with escape sequences. Without it, code has backquotes, and headings are underlined.
	Color bool
}

// Marks in formatted text. They have no width and are replaced at the end.
const (
	markStrong = "\x01"
	markCode   = "\x02"
	markEnd    = "\x03"
)

// minWidth is the smallest width of a column of text. docs_table.go uses it for the columns of tables.
const minWidth = 12

// render formats a page as text. `slipway docs` calls it for pages, unless -o is set (docs_command.go).
func render(page string, s style) string {
	var out strings.Builder
	for n, b := range parse(page) {
		if n > 0 && (b.kind != item || !b.follows) {
			out.WriteByte('\n')
		}
		for _, line := range s.block(b) {
			out.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	if s.Color {
		return strings.NewReplacer(markStrong, "\x1b[1m", markCode, "\x1b[36m", markEnd, "\x1b[0m").Replace(out.String())
	}
	return strings.NewReplacer(markStrong, "", markEnd, "").Replace(out.String())
}

// block returns the lines of a block.
func (s style) block(b block) []string {
	switch b.kind {
	case heading:
		return s.heading(b)
	case code:
		return indentLines(b.lines, strings.Repeat(" ", b.indent+codeIndent), "")
	case table:
		return s.table(b.lines)
	case item:
		pad := strings.Repeat(" ", b.indent)
		first, rest := pad+b.marker+" ", pad+strings.Repeat(" ", len(b.marker)+1)
		return indentLines(wrap(s.inline(strings.Join(b.lines, " ")), s.Width-len(rest)), rest, first)
	}
	pad := strings.Repeat(" ", b.indent)
	return indentLines(wrap(s.inline(strings.Join(b.lines, " ")), s.Width-len(pad)), pad, "")
}

func (s style) heading(b block) []string {
	text := s.inline(b.lines[0])
	if s.Color {
		return []string{markStrong + strings.NewReplacer(markCode, "", markEnd, "", markStrong, "").Replace(text) + markEnd}
	}
	line := "-"
	if b.level == 1 {
		line = "="
	}
	return []string{text, strings.Repeat(line, widthOf(text))}
}

func indentLines(lines []string, pad, first string) []string {
	var out []string
	for n, line := range lines {
		if n == 0 && first != "" {
			out = append(out, first+line)
			continue
		}
		out = append(out, pad+line)
	}
	return out
}

var (
	spanForm   = regexp.MustCompile("`[^`]+`|!?\\[(?:[^\\[\\]`]|`[^`]*`)+\\]\\([^()\\s]+\\)|\\*\\*[^*]+\\*\\*")
	linkForm   = regexp.MustCompile(`^(!?)\[(.+)\]\(([^()\s]+)\)$`)
	escapeForm = regexp.MustCompile(`\\([\\*_|<>\[\]` + "`" + `#])`)
)

// inline formats the spans of a text: code, links, pictures, strong emphasis, and escaped characters. It is called for
// texts of blocks, and for cells of tables (docs_table.go).
func (s style) inline(text string) string {
	var out strings.Builder
	for text != "" {
		at := spanForm.FindStringIndex(text)
		if at == nil {
			break
		}
		out.WriteString(plain(text[:at[0]]))
		out.WriteString(s.span(text[at[0]:at[1]]))
		text = text[at[1]:]
	}
	out.WriteString(plain(text))
	return out.String()
}

func plain(text string) string {
	text = strings.NewReplacer("<br>", " ", "&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(text)
	return escapeForm.ReplaceAllString(text, "$1")
}

func (s style) span(text string) string {
	if code, ok := strings.CutPrefix(text, "`"); ok {
		code = strings.TrimSuffix(code, "`")
		if s.Color {
			return markCode + code + markEnd
		}
		return "`" + code + "`"
	}
	if strong, ok := strings.CutPrefix(text, "**"); ok {
		return markStrong + s.inline(strings.TrimSuffix(strong, "**")) + markEnd
	}
	m := linkForm.FindStringSubmatch(text)
	if m == nil {
		return plain(text)
	}
	if m[1] == "!" {
		return "[Picture: " + plain(m[2]) + "]"
	}
	return s.inline(m[2]) + target(m[2], m[3])
}

// target returns what follows the text of a link: the command that prints the page, or the address. Links within the
// page and to files that the binary does not include have only a text.
func target(text, link string) string {
	if strings.Contains(link, "://") {
		if text == link {
			return ""
		}
		return " (" + link + ")"
	}
	file, section, _ := strings.Cut(link, "#")
	if file == "" || strings.Contains(file, "/") {
		return ""
	}
	switch path.Ext(file) {
	case ".md":
		file = strings.TrimSuffix(file, ".md")
	case ".yaml":
	default:
		return ""
	}
	if section != "" {
		file += "#" + section
	}
	return " (slipway docs " + file + ")"
}

// widthOf returns the number of columns of a text. Marks have no width, so every width of a formatted text must come
// from here.
func widthOf(text string) int {
	return utf8.RuneCountInString(text) - strings.Count(text, markStrong) - strings.Count(text, markEnd) - strings.Count(text, markCode)
}

// wrap breaks a text between words. Words that are wider than a line are broken. Cells of tables are wrapped with it,
// too.
func wrap(text string, width int) []string {
	width = max(width, minWidth)
	var lines []string
	line, used := "", 0
	for _, word := range strings.Fields(text) {
		for widthOf(word) > width {
			if line != "" {
				lines, line, used = append(lines, line), "", 0
			}
			head := cut(word, width)
			lines, word = append(lines, head), word[len(head):]
		}
		switch n := widthOf(word); {
		case line == "":
			line, used = word, n
		case used+1+n > width:
			lines, line, used = append(lines, line), word, n
		default:
			line, used = line+" "+word, used+1+n
		}
	}
	if line != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	return closeMarks(lines)
}

// closeMarks ends marks at the end of each line and repeats them on the next, because other text can stand between
// them.
func closeMarks(lines []string) []string {
	open := ""
	for n, line := range lines {
		line = open + line
		for _, r := range line {
			switch mark := string(r); mark {
			case markStrong, markCode:
				open = mark
			case markEnd:
				open = ""
			}
		}
		if open != "" {
			line += markEnd
		}
		lines[n] = line
	}
	return lines
}

// cut returns the longest prefix of a word that fits into a width.
func cut(word string, width int) string {
	for n := range word {
		if widthOf(word[:n]) >= width {
			return word[:n]
		}
	}
	return word
}

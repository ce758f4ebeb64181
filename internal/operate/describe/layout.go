package describe

import (
	"strings"
	"unicode/utf8"

	"github.com/slipwayhq/slipway/internal/redact"
)

// minMessageWidth is the minimum width of the message column. In a narrower one messages are printed below their row.
const minMessageWidth = 30

// String formats the lines of the table, for [Render], with columns as wide as their widest cell, two spaces between
// columns, and no trailing spaces. Messages are in the last column, or below their row if the terminal is too narrow.
func (t *table) String() string {
	for _, l := range t.lines {
		for i, c := range l.cells {
			l.cells[i] = redact.Escape(c)
		}
	}
	widths := t.widths()
	columns := columns{widths: widths, painted: 5} // STATUS
	if t.style.Deprecated {
		columns.painted = 1 // READY
	}
	before := 0
	for _, w := range widths[:len(widths)-1] {
		before += w + 2
	}
	room := t.style.Width - before
	var out strings.Builder
	for n, l := range t.lines {
		switch {
		case t.style.Width <= 0:
			columns.beside(&out, l, 0)
		case room >= minMessageWidth:
			columns.beside(&out, l, room)
		default:
			columns.under(&out, l, t.style.Width, n == 0)
		}
	}
	return out.String()
}

func (t *table) widths() []int {
	widths := make([]int, len(t.lines[0].cells))
	for _, l := range t.lines {
		for i, c := range l.cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	return widths
}

// columns are the column widths of a table, and the index of the colored column.
type columns struct {
	widths  []int
	painted int
}

// beside prints a line with its message in the last column, which has the width room; 0 is unlimited.
func (k columns) beside(out *strings.Builder, l line, room int) {
	last := len(l.cells) - 1
	for i, part := range wrap(l.cells[last], room) {
		cells := make([]string, len(l.cells))
		cells[0], cells[last] = l.below, part
		if i == 0 {
			copy(cells, l.cells[:last])
		}
		k.write(out, cells, l.paint)
	}
}

// under prints a line with its message below it. The heading has no message.
func (k columns) under(out *strings.Builder, l line, width int, heading bool) {
	last := len(l.cells) - 1
	k.write(out, l.cells[:last], l.paint)
	if heading || l.cells[last] == "" {
		return
	}
	for _, part := range wrap(l.cells[last], max(minMessageWidth, width-utf8.RuneCountInString(l.below)-2)) {
		out.WriteString(l.below + "  " + part + "\n")
	}
}

func (k columns) write(out *strings.Builder, cells []string, paint string) {
	end := len(cells)
	for end > 0 && cells[end-1] == "" {
		end--
	}
	var row strings.Builder
	for i, c := range cells[:end] {
		pad := ""
		if i < end-1 {
			pad = strings.Repeat(" ", k.widths[i]-utf8.RuneCountInString(c)+2)
		}
		if i == k.painted && paint != "" && c != "" {
			c = paint + c + plain
		}
		row.WriteString(c + pad)
	}
	out.WriteString(strings.TrimRight(row.String(), " ") + "\n")
}

// wrap splits a message at its line breaks, and at spaces so that no part is wider than room; with room 0 only at line
// breaks. It returns at least one part.
func wrap(message string, room int) []string {
	var parts []string
	for paragraph := range strings.Lines(message) {
		paragraph = strings.TrimRight(paragraph, "\n ")
		indent := paragraph[:len(paragraph)-len(strings.TrimLeft(paragraph, " *"))]
		current := ""
		for word := range strings.FieldsSeq(paragraph) {
			switch {
			case current == "":
				current = indent[:len(indent)-len(strings.TrimLeft(indent, " "))] + word
			case room > 0 && utf8.RuneCountInString(current)+1+utf8.RuneCountInString(word) > room:
				parts = append(parts, current)
				current = strings.Repeat(" ", len(indent)) + word
			default:
				current += " " + word
			}
		}
		parts = append(parts, current)
	}
	if len(parts) == 0 {
		return []string{""}
	}
	return parts
}

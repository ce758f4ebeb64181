package cli

import "strings"

// gap separates the columns of a table.
const gap = 2

// table formats the rows of a table: the columns are aligned, and cells that are too wide are wrapped. [style.block]
// calls it with rows in Markdown, without the line below the header.
func (s style) table(rows []string) []string {
	var grid [][]string
	columns := 0
	for _, row := range rows {
		line := cells(row)
		for n := range line {
			line[n] = s.inline(line[n])
		}
		grid, columns = append(grid, line), max(columns, len(line))
	}
	widths := s.columnWidths(grid, columns)
	var out []string
	for n, row := range grid {
		out = append(out, joinCells(row, widths)...)
		if n == 0 {
			out = append(out, ruler(widths))
		}
	}
	return out
}

func ruler(widths []int) string {
	var out []string
	for _, w := range widths {
		out = append(out, strings.Repeat("-", w))
	}
	return strings.Join(out, strings.Repeat(" ", gap))
}

// column describes the cells of a column.
type column struct {
	// natural is the width of the widest cell, word of the longest word, and text of all cells together.
	natural, word, text int
}

func columnsOf(grid [][]string, n int) []column {
	out := make([]column, n)
	for _, row := range grid {
		for i, cell := range row {
			width := widthOf(cell)
			out[i].natural, out[i].text = max(out[i].natural, width), out[i].text+width
			for word := range strings.FieldsSeq(cell) {
				out[i].word = max(out[i].word, widthOf(word))
			}
		}
	}
	return out
}

// columnWidths returns the widths of the columns. If the table is too wide, each column gets the width of its longest
// word first, and the rest is shared by the amount of text.
func (s style) columnWidths(grid [][]string, n int) []int {
	columns, widths := columnsOf(grid, n), make([]int, n)
	free, text := s.Width-gap*(n-1), 0
	share := free / max(1, n)
	for i, c := range columns {
		widths[i] = min(c.natural, max(minWidth, min(c.word, share)))
		free, text = free-widths[i], text+c.text
	}
	for shared := true; shared && free > 0; {
		shared = false
		rest := free
		for i, c := range columns {
			more := min(c.natural-widths[i], max(1, rest*c.text/max(1, text)), free)
			if more > 0 {
				widths[i], free, shared = widths[i]+more, free-more, true
			}
		}
	}
	return widths
}

// joinCells returns the lines of a row.
func joinCells(row []string, widths []int) []string {
	var wrapped [][]string
	height := 1
	for n, cell := range row {
		lines := wrap(cell, widths[n])
		wrapped, height = append(wrapped, lines), max(height, len(lines))
	}
	out := make([]string, height)
	for n, lines := range wrapped {
		for h := range out {
			text := ""
			if h < len(lines) {
				text = lines[h]
			}
			out[h] += text
			if n < len(wrapped)-1 {
				out[h] += strings.Repeat(" ", max(0, widths[n]-widthOf(text))+gap)
			}
		}
	}
	return out
}

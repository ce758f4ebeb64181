package docs

import "strings"

// gap separates the columns of a table.
const gap = 2

// table formats the rows of a table: the columns are aligned, and cells that are too wide are wrapped.
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

// columnWidths returns the widths of the columns. Narrow columns have the width of their text; the others share the rest.
func (s style) columnWidths(grid [][]string, columns int) []int {
	widths := make([]int, columns)
	for _, row := range grid {
		for n, cell := range row {
			widths[n] = max(widths[n], widthOf(cell))
		}
	}
	free, open := s.Width-gap*(columns-1), columns
	narrow := make([]bool, columns)
	for changed := true; changed && open > 0; {
		changed = false
		share := free / open
		for n, w := range widths {
			if !narrow[n] && w <= share {
				narrow[n], changed = true, true
				free, open = free-w, open-1
			}
		}
	}
	for n := range widths {
		if !narrow[n] {
			widths[n] = max(minWidth, free/open)
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

package main

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/internal/reconciler"
)

// row is a line of the picture.
type row struct {
	name string
	bars []bar
}

// bar is a span on a row, in seconds since the creation.
type bar struct {
	from, to float64
	class    int
	text     string
}

// stages are the parts of a Machine's trace, in order.
func stages() []string {
	return []string{reconciler.SpanBootstrapData, reconciler.SpanInfrastructure, reconciler.SpanNodeJoin, reconciler.SpanFirstReady}
}

const reconciled = "reconcile "

// rowsOf makes rows of spans: one for each controller, in the order in which they began to work, and one for each Machine below.
func rowsOf(spans []span, began time.Time) []row {
	at := func(t time.Time) float64 { return max(0, t.Sub(began).Seconds()) }
	controllers, machines := map[string]*row{}, map[string]*row{}
	var above, below []*row
	of := func(rows map[string]*row, list *[]*row, key, name string) *row {
		if rows[key] == nil {
			rows[key] = &row{name: name}
			*list = append(*list, rows[key])
		}
		return rows[key]
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(a.start.Compare(b.start), a.end.Compare(b.end)) })
	for _, s := range spans {
		if controller, ok := strings.CutPrefix(s.name, reconciled); ok {
			r := of(controllers, &above, controller, controller)
			r.bars = append(r.bars, bar{from: at(s.start), to: at(s.end), text: s.object})
			continue
		}
		if stage := slices.Index(stages(), s.name); stage >= 0 && s.end.After(s.start) {
			r := of(machines, &below, s.trace, fmt.Sprintf("Machine %d", len(machines)+1))
			r.bars = append(r.bars, bar{from: at(s.start), to: at(s.end), class: stage + 1, text: s.name})
		}
	}
	var out []row
	for _, r := range append(above, below...) {
		out = append(out, *r)
	}
	return out
}

// Sizes in pixels.
const (
	left, inner, right = 190, 700, 20
	rowHeight, head    = 22, 64
	narrowest          = 1.5 // of a bar
)

// style adapts to dark and light pages. c0 are reconciliations.
const style = `text{font:12px sans-serif;fill:#555}.title{font-size:15px;font-weight:bold}.grid{stroke:#8884}.c0{fill:#888}` +
	`.c1{fill:#0b6bcb}.c2{fill:#d9822b}.c3{fill:#2e8540}.c4{fill:#8a4fbf}@media(prefers-color-scheme:dark){text{fill:#bbb}}`

// draw writes the rows as SVG.
func draw(w io.Writer, title string, rows []row) error {
	last := 1.0
	for _, r := range rows {
		for _, b := range r.bars {
			last = max(last, b.to)
		}
	}
	x := func(at float64) float64 { return left + inner*at/last }
	var out strings.Builder
	bottom := head + rowHeight*len(rows)
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img"><title>%s</title><style>%s</style>`,
		left+inner+right, bottom+36, html.EscapeString(title), style)
	fmt.Fprintf(&out, `<text class="title" x="10" y="20">%s</text>`, html.EscapeString(title))
	legend := left
	for i, name := range append([]string{"reconciliation"}, stages()...) {
		fmt.Fprintf(&out, `<rect class="c%d" x="%d" y="34" width="10" height="10"/><text x="%d" y="43">%s</text>`, i, legend, legend+15, name)
		legend += 30 + 7*len(name)
	}
	for second := 0; float64(second) <= last; second++ {
		fmt.Fprintf(&out, `<line class="grid" x1="%[1]f" y1="%[2]d" x2="%[1]f" y2="%[3]d"/><text x="%[1]f" y="%[4]d" text-anchor="middle">%[5]d</text>`,
			x(float64(second)), head-6, bottom, bottom+16, second)
	}
	fmt.Fprintf(&out, `<text x="%d" y="%d">seconds</text>`, left, bottom+32)
	for i, r := range rows {
		y := head + rowHeight*i
		fmt.Fprintf(&out, `<text x="%d" y="%d" text-anchor="end">%s</text>`, left-8, y+13, html.EscapeString(r.name))
		for _, b := range r.bars {
			fmt.Fprintf(&out, `<rect class="c%d" x="%f" y="%d" width="%f" height="14"><title>%s %.2f s to %.2f s</title></rect>`,
				b.class, x(b.from), y+2, max(narrowest, x(b.to)-x(b.from)), html.EscapeString(b.text), b.from, b.to)
		}
	}
	out.WriteString("</svg>\n")
	_, err := io.WriteString(w, out.String())
	return err
}

package harness

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Chart is an SVG with panels of lines on one horizontal axis.
type Chart struct {
	Title  string
	Panels []Panel
	Marks  []Mark // in order
	Axis   Axis
}

// Axis is the horizontal axis; default: seconds, with ten steps from zero.
type Axis struct {
	Title string    // with the unit
	Ticks []float64 // positions of the numbers
	Log   bool      // logarithmic; the ticks must be above zero
}

// Panel has a vertical axis from zero.
type Panel struct {
	Title string // with the unit
	Lines []Line
}

type Line struct {
	Name   string
	Points []Point // in order
}

func (l *Line) Add(at, value float64) { l.Points = append(l.Points, Point{at, value}) }

type Point struct{ At, Value float64 }

// Mark is a named position on the horizontal axis, in seconds.
type Mark struct {
	At   float64
	Name string
}

func (m Mark) label() string { return m.Name + ", " + shortNumber(m.At) + " s" }

// Sizes in pixels. The names of marks are vertical, above the first panel.
const (
	chartWidth, chartLeft, chartRight = 960, 64, 60
	chartHead, panelHeight, panelGap  = 72, 180, 46
	chartFoot                         = 40
	markDistance, letterHeight        = 14, 6.6
	colors                            = 3 // classes c0, c1 … in chartStyle
)

// chartStyle adapts to light and dark pages.
const chartStyle = `text{font:12px sans-serif;fill:#555}.title{font-size:15px;font-weight:bold}.grid{stroke:#8884;stroke-width:1}` +
	`.mark{stroke:#888;stroke-width:1;stroke-dasharray:3 3}.line{fill:none;stroke-width:1.6}` +
	`.c0{stroke:#0b6bcb}.c1{stroke:#d9822b}.c2{stroke:#2e8540}tspan.c0{fill:#0b6bcb;stroke:none}tspan.c1{fill:#d9822b;stroke:none}` +
	`tspan.c2{fill:#2e8540;stroke:none}@media(prefers-color-scheme:dark){text{fill:#bbb}}`

func (c Chart) SVG() string {
	longest := 0
	for _, m := range c.Marks {
		longest = max(longest, utf8.RuneCountInString(m.label()))
	}
	top := chartHead + int(math.Ceil(float64(longest)*letterHeight))
	bottom := top + len(c.Panels)*(panelHeight+panelGap) - panelGap
	d := &drawing{axis: c.axis()}
	d.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img">`, chartWidth, bottom+chartFoot)
	d.add(`<title>%s</title><style>%s</style>`, html.EscapeString(c.Title), chartStyle)
	d.add(`<text class="title" x="%d" y="22">%s</text>`, chartLeft, html.EscapeString(c.Title))
	d.marks(c.Marks, top, bottom)
	for i, p := range c.Panels {
		d.panel(p, top+i*(panelHeight+panelGap))
	}
	for _, at := range d.axis.Ticks {
		d.add(`<text x="%.1f" y="%d" text-anchor="middle">%s</text>`, d.x(at), bottom+18, shortNumber(at))
	}
	d.add(`<text x="%d" y="%d" text-anchor="end">%s</text>`, chartWidth-chartRight, bottom+34, html.EscapeString(d.axis.Title))
	d.add("</svg>")
	return d.String()
}

// axis returns the axis with its defaults.
func (c Chart) axis() Axis {
	a := c.Axis
	if a.Title == "" {
		a.Title = "seconds"
	}
	if len(a.Ticks) > 0 {
		return a
	}
	last := 1.0
	for _, p := range c.Panels {
		for _, l := range p.Lines {
			for _, point := range l.Points {
				last = max(last, point.At)
			}
		}
	}
	for _, m := range c.Marks {
		last = max(last, m.At)
	}
	const steps = 10
	for i := range steps + 1 {
		a.Ticks = append(a.Ticks, roundUp(last)*float64(i)/steps)
	}
	return a
}

type drawing struct {
	strings.Builder
	axis Axis
}

func (d *drawing) add(format string, args ...any) { fmt.Fprintf(d, format+"\n", args...) }

// x is the horizontal position of a value.
func (d *drawing) x(at float64) float64 {
	first, last := d.axis.Ticks[0], d.axis.Ticks[len(d.axis.Ticks)-1]
	if d.axis.Log {
		first, last, at = math.Log(first), math.Log(last), math.Log(at)
	}
	share := 0.5
	if first != last {
		share = (at - first) / (last - first)
	}
	return chartLeft + share*(chartWidth-chartLeft-chartRight)
}

// marks draws a line for each mark. A name moves to the right if it would overlap the previous name.
func (d *drawing) marks(all []Mark, top, bottom int) {
	free := math.Inf(-1)
	for _, m := range all {
		x := d.x(m.At)
		at := max(x, free)
		free = at + markDistance
		d.add(`<polyline class="mark" fill="none" points="%.1f,%d %.1f,%d %.1f,%d"/>`, at, top-34, x, top-24, x, bottom)
		d.add(`<text transform="translate(%.1f %d) rotate(-90)">%s</text>`, at+4, top-38, html.EscapeString(m.label()))
	}
}

func (d *drawing) panel(p Panel, y int) {
	peak := 0.0
	for _, l := range p.Lines {
		for _, point := range l.Points {
			peak = max(peak, point.Value)
		}
	}
	peak = roundUp(peak)
	height := func(value float64) float64 { return float64(y) + panelHeight*(1-value/peak) }
	const steps = 4
	for i := range steps + 1 {
		value := peak * float64(i) / steps
		d.add(`<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`, chartLeft, height(value), chartWidth-chartRight, height(value))
		d.add(`<text x="%d" y="%.1f" text-anchor="end">%s</text>`, chartLeft-8, height(value)+4, shortNumber(value))
	}
	legend := ""
	for i, l := range p.Lines {
		legend += fmt.Sprintf(` · <tspan class="c%d">%s</tspan>`, i%colors, html.EscapeString(l.Name))
		var points []string
		for _, point := range l.Points {
			points = append(points, fmt.Sprintf("%.1f,%.1f", d.x(point.At), height(point.Value)))
		}
		d.add(`<polyline class="line c%d" points="%s"/>`, i%colors, strings.Join(points, " "))
	}
	d.add(`<text x="%d" y="%d" text-anchor="end">%s%s</text>`, chartWidth-chartRight, y-10, html.EscapeString(p.Title), legend)
}

// roundUp is the next number of the form 1, 2, 2.5, 3, 4, 5, 6 or 8 times a power of ten.
func roundUp(v float64) float64 {
	if v <= 0 {
		return 1
	}
	scale := math.Pow(10, math.Floor(math.Log10(v)))
	for _, n := range []float64{1, 2, 2.5, 3, 4, 5, 6, 8} {
		if v <= n*scale*(1+1e-9) {
			return n * scale
		}
	}
	return 10 * scale
}

// shortNumber has at most two digits after the point.
func shortNumber(v float64) string { return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64) }

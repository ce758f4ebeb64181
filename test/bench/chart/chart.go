package chart

import (
	"fmt"
	"html"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Chart is a drawing.
type Chart struct {
	Title  string
	Panels []Panel
	Marks  []Mark // in order
	Axis   Axis
}

// Axis is the level axis, that of time unless it says otherwise.
type Axis struct {
	Title string    // with the unit; default seconds
	Ticks []float64 // where numbers stand; default: ten steps from zero
	Log   bool      // logarithmic between the first and the last tick, which are needed and above zero
}

// Panel is one pair of axes. The upright one begins at zero.
type Panel struct {
	Title string // with the unit
	Lines []Line
}

// Line is one quantity.
type Line struct {
	Name   string
	Points []Point // in order
}

// Point is one value of a line.
type Point struct {
	At    float64 // on the level axis: seconds, unless Axis says otherwise
	Value float64
}

// Mark is a place on the level axis, for example a moment, with a name.
type Mark struct {
	At   float64
	Name string
}

// Sizes in pixels. Names of marks stand upright above the first panel; every panel has its title and the names of its
// lines above it.
const (
	width, left, right      = 960, 64, 60
	head, height, gap, foot = 72, 180, 46, 40
	inner                   = width - left - right
	between                 = 14  // the least distance of two names of marks
	perLetter               = 6.6 // of a name
)

// style adapts to dark and light pages.
const style = `text{font:12px sans-serif;fill:#555}.title{font-size:15px;font-weight:bold}.grid{stroke:#8884;stroke-width:1}` +
	`.mark{stroke:#888;stroke-width:1;stroke-dasharray:3 3}.line{fill:none;stroke-width:1.6}` +
	`.c0{stroke:#0b6bcb}.c1{stroke:#d9822b}.c2{stroke:#2e8540}tspan.c0{fill:#0b6bcb;stroke:none}tspan.c1{fill:#d9822b;stroke:none}` +
	`tspan.c2{fill:#2e8540;stroke:none}@media(prefers-color-scheme:dark){text{fill:#bbb}}`

// colours is the number of classes c0, c1 … in style.
const colours = 3

// WriteSVG draws the chart.
func (c Chart) WriteSVG(w io.Writer) error {
	d := &drawing{axis: c.axis()}
	top := head + c.names()
	total := top + len(c.Panels)*(height+gap) - gap + foot
	d.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img">`, width, total)
	d.add(`<title>%s</title><style>%s</style>`, html.EscapeString(c.Title), style)
	d.add(`<text class="title" x="%d" y="22">%s</text>`, left, html.EscapeString(c.Title))
	bottom := top + len(c.Panels)*(height+gap) - gap
	d.marks(c.Marks, top, bottom)
	for i, p := range c.Panels {
		d.panel(p, top+i*(height+gap))
	}
	d.level(bottom)
	d.add("</svg>")
	_, err := io.WriteString(w, d.String())
	return err
}

// axis is the level axis with its defaults.
func (c Chart) axis() Axis {
	a := c.Axis
	if a.Title == "" {
		a.Title = "seconds"
	}
	if len(a.Ticks) > 0 {
		return a
	}
	end := niceCeil(c.end())
	const steps = 10
	for i := range steps + 1 {
		a.Ticks = append(a.Ticks, end*float64(i)/steps)
	}
	return a
}

// share is how far along the axis a value is, from 0 to 1.
func (a Axis) share(at float64) float64 {
	first, last := a.Ticks[0], a.Ticks[len(a.Ticks)-1]
	if a.Log {
		first, last, at = math.Log(first), math.Log(last), math.Log(at)
	}
	if first == last {
		return 0.5
	}
	return (at - first) / (last - first)
}

// end is the last place of the chart, at least 1.
func (c Chart) end() float64 {
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
	return last
}

// names is the height of the names of the marks.
func (c Chart) names() int {
	longest := 0
	for _, m := range c.Marks {
		longest = max(longest, utf8.RuneCountInString(m.label()))
	}
	return int(math.Ceil(float64(longest) * perLetter))
}

func (m Mark) label() string { return m.Name + ", " + number(m.At) + " s" }

type drawing struct {
	strings.Builder
	axis Axis
}

func (d *drawing) add(format string, args ...any) {
	fmt.Fprintf(d, format+"\n", args...)
}

func (d *drawing) x(at float64) float64 { return left + d.axis.share(at)*inner }

// marks draws a line for each, and its name moved to the right where it would stand on the one before.
func (d *drawing) marks(all []Mark, top, bottom int) {
	free := math.Inf(-1)
	for _, m := range all {
		x := d.x(m.At)
		at := max(x, free)
		free = at + between
		d.add(`<polyline class="mark" fill="none" points="%.1f,%d %.1f,%d %.1f,%d"/>`, at, top-34, x, top-24, x, bottom)
		d.add(`<text transform="translate(%.1f %d) rotate(-90)">%s</text>`, at+4, top-38, html.EscapeString(m.label()))
	}
}

func (d *drawing) panel(p Panel, y int) {
	most := 0.0
	for _, l := range p.Lines {
		for _, point := range l.Points {
			most = max(most, point.Value)
		}
	}
	most = niceCeil(most)
	const steps = 4
	for i := range steps + 1 {
		at := float64(y) + height*(1-float64(i)/steps)
		d.add(`<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`, left, at, width-right, at)
		d.add(`<text x="%d" y="%.1f" text-anchor="end">%s</text>`, left-8, at+4, number(most*float64(i)/steps))
	}
	legend := ""
	for i, l := range p.Lines {
		class := i % colours
		legend += fmt.Sprintf(` · <tspan class="c%d">%s</tspan>`, class, html.EscapeString(l.Name))
		var points []string
		for _, point := range l.Points {
			points = append(points, fmt.Sprintf("%.1f,%.1f", d.x(point.At), float64(y)+height*(1-point.Value/most)))
		}
		d.add(`<polyline class="line c%d" points="%s"/>`, class, strings.Join(points, " "))
	}
	d.add(`<text x="%d" y="%d" text-anchor="end">%s%s</text>`, width-right, y-10, html.EscapeString(p.Title), legend)
}

// level writes the numbers of the level axis below the last panel.
func (d *drawing) level(bottom int) {
	for _, at := range d.axis.Ticks {
		d.add(`<text x="%.1f" y="%d" text-anchor="middle">%s</text>`, d.x(at), bottom+18, number(at))
	}
	d.add(`<text x="%d" y="%d" text-anchor="end">%s</text>`, width-right, bottom+34, html.EscapeString(d.axis.Title))
}

// niceCeil is the next number of the form 1, 2, 2.5, 3, 4, 5, 6 or 8 times a power of ten.
func niceCeil(v float64) float64 {
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

// number has at most two digits after the point.
func number(v float64) string { return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64) }

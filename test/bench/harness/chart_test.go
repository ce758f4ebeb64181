package harness

import (
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
)

func TestSVG(t *testing.T) {
	tests := map[string]struct {
		reason string
		chart  Chart
		want   []string // in the drawing
	}{
		"empty": {
			reason: "nothing to draw is still a drawing, of a second",
			chart:  Chart{Title: "nothing"},
			want:   []string{"<title>nothing</title>", ">seconds<"},
		},
		"escaped": {
			reason: "names are text, not markup",
			chart:  Chart{Title: "a < b & c", Marks: []Mark{{Name: "<b>"}}},
			want:   []string{"a &lt; b &amp; c", "&lt;b&gt;"},
		},
		"line": {
			reason: "time runs from 64 to 900 over 10 s; 800 of 800 is the upper edge (72), 0 the lower (252)",
			chart: Chart{Panels: []Panel{{Title: "MB", Lines: []Line{
				{Name: "one", Points: []Point{{At: 0, Value: 0}, {At: 10, Value: 800}}},
			}}}},
			want: []string{`points="64.0,252.0 900.0,72.0"`, ">800<", ">MB · <", ">one<"},
		},
		"panels": {
			reason: "the second panel is below the first",
			chart: Chart{Panels: []Panel{
				{Lines: []Line{{Points: []Point{{At: 1, Value: 1}}}}},
				{Lines: []Line{{Points: []Point{{At: 1, Value: 1}}}}},
			}},
			want: []string{`points="900.0,72.0"`, `points="900.0,298.0"`},
		},
		"marks close together": {
			reason: "the names do not stand on each other, the lines stay where they are",
			chart:  Chart{Marks: []Mark{{At: 10, Name: "first"}, {At: 10, Name: "second"}}},
			want:   []string{"translate(904.0 114)", "translate(918.0 114)", "900.0,128"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out := tt.chart.SVG()
			for d := xml.NewDecoder(strings.NewReader(out)); ; {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("not XML: %v\n%s", err, out)
				}
			}
			for _, want := range tt.want {
				if !strings.Contains(out, want) {
					t.Errorf("%s: there is no %s in\n%s", tt.reason, want, out)
				}
			}
		})
	}
}

func TestAxisCoversEveryValue(t *testing.T) {
	for _, most := range []float64{0.3, 1, 9.9, 10, 11, 99, 101, 555, 1234} {
		c := Chart{Panels: []Panel{{Lines: []Line{{Points: []Point{{Value: most}}}}}}}
		out := c.SVG()
		_, rest, _ := strings.Cut(out, `class="line c0" points="64.0,`)
		text, _, _ := strings.Cut(rest, `"`)
		y, err := strconv.ParseFloat(text, 64)
		if err != nil || y < 72 || y > 252 {
			t.Errorf("%v is drawn at %q, want within 72 and 252", most, text)
		}
	}
}

func TestLogarithmicAxis(t *testing.T) {
	c := Chart{
		Axis: Axis{Title: "clusters", Ticks: []float64{1, 10, 100}, Log: true},
		Panels: []Panel{{Lines: []Line{
			{Points: []Point{{At: 1, Value: 1}, {At: 10, Value: 1}, {At: 100, Value: 1}}},
		}}},
	}
	out := c.SVG()
	for _, want := range []string{`points="64.0,72.0 482.0,72.0 900.0,72.0"`, ">clusters<", ">100<"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %s in\n%s", want, out)
		}
	}
}

package term

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// CX-09: colours and characters follow the terminal and NO_COLOR.
func TestDecide(t *testing.T) {
	all := Screen{Live: true, Unicode: true, Color: true}
	cases := map[string]struct {
		reason   string
		terminal bool
		vars     map[string]string
		want     Screen
	}{
		"terminal":   {"everything works on a terminal", true, nil, all},
		"pipe":       {"programs get plain text", false, map[string]string{"LANG": "en_US.UTF-8"}, Screen{}},
		"no color":   {"NO_COLOR concerns colours only", true, map[string]string{"NO_COLOR": "1"}, Screen{Live: true, Unicode: true}},
		"forced":     {"a pager that shows colours can ask for them", false, map[string]string{"CLICOLOR_FORCE": "1"}, Screen{Color: true}},
		"both":       {"NO_COLOR wins", false, map[string]string{"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, Screen{}},
		"dumb":       {"a terminal that only appends", true, map[string]string{"TERM": "dumb"}, Screen{}},
		"C locale":   {"no box characters there", true, map[string]string{"LC_ALL": "C", "LANG": "en_US.UTF-8"}, Screen{Live: true, Color: true}},
		"C.UTF-8":    {"the C locale of today has them", true, map[string]string{"LANG": "C.UTF-8"}, all},
		"not forced": {"0 does not force", false, map[string]string{"CLICOLOR_FORCE": "0"}, Screen{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := screenOf(func(name string) string { return tc.vars[name] }, tc.terminal)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, d)
			}
		})
	}
}

func TestOfABuffer(t *testing.T) {
	e := Env{Getenv: func(string) string { return "" }}
	if got := DetectScreen(e, &bytes.Buffer{}); got != (Screen{}) {
		t.Errorf("a buffer is not a terminal: %+v", got)
	}
}

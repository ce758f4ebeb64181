package progress

import (
	"io"
	"strings"
	"testing"
	"time"
)

// What a condition says is no order to the terminal.
func TestTextOfOthers(t *testing.T) {
	step := []Step{{Name: "worker", DoneWhen: "it runs", Detail: "gone\x1b[2J\rdone"}}
	for name, c := range map[string]func(w io.Writer) Reporter{
		"plain": func(w io.Writer) Reporter { return NewPlain(w, time.Now) },
		"live":  func(w io.Writer) Reporter { return NewLive(w, TerminalOptions{}, time.Now) },
	} {
		var out strings.Builder
		c(&out).Show(step)
		if got := out.String(); !strings.Contains(got, `gone\x1b[2J\rdone`) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

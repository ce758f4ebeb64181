package progress

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/slipwayhq/slipway/internal/redact"
)

// detailInterval is the minimum time between two details of a step in Plain, because details can change with every read
// and lines in a log are permanent.
const detailInterval = 5 * time.Second

// detailDelay is the time after the end of a step for which Plain prints no detail of the last step, because the
// summary conditions lag behind.
const detailDelay = 2 * time.Second

// detailLength is the maximum length of a detail in characters. It usually includes the first issue; "slipway describe"
// prints all.
const detailLength = 300

// Plain is the [Reporter] for logs and pipes. It prints a line when a step starts, with the state that ends it, and
// when it is done. In between it prints the details of the step at most every five seconds.
type Plain struct {
	w     io.Writer
	now   func() time.Time
	start time.Time
	last  map[string]printed
	ended time.Time // when the last step was done
}

// printed is the last printed line of a step, and its time.
type printed struct {
	step Step
	at   time.Time
}

// NewPlain returns a reporter that displays the time elapsed since now. Package cli/term calls it if the output is no
// terminal.
func NewPlain(w io.Writer, now func() time.Time) *Plain {
	return &Plain{w: w, now: now, start: now(), last: map[string]printed{}}
}

// Show implements Reporter. It is called repeatedly, so a suppressed detail is printed later if it is still current.
func (p *Plain) Show(steps []Step) {
	now := p.now()
	at := Elapsed(now.Sub(p.start))
	if slices.ContainsFunc(steps, func(s Step) bool { return s.Done && !p.last[s.Name].step.Done }) {
		p.ended = now
	}
	for i, s := range steps {
		rests := i == len(steps)-1 && now.Sub(p.ended) < detailDelay
		s.Detail = cut(redact.Escape(s.Detail), detailLength, "…")
		last, known := p.last[s.Name]
		switch {
		case !known || last.step.Done != s.Done:
			_, _ = fmt.Fprintf(p.w, "%6s  %s\n", at, s)
		case last.step.Detail != s.Detail && s.Detail != "" && now.Sub(last.at) >= detailInterval && !rests:
			_, _ = fmt.Fprintf(p.w, "%6s  %s: %s\n", at, s.Name, s.Detail)
		default:
			continue
		}
		p.last[s.Name] = printed{s, now}
	}
}

// String formats the step as one line.
func (s Step) String() string {
	switch {
	case s.Done && s.Detail == "":
		return s.Name + ": done"
	case s.Done:
		return s.Name + ": done, " + s.Detail
	case s.Detail == "":
		return s.Name + ": waits until " + s.DoneWhen
	}
	return s.Name + ": waits until " + s.DoneWhen + " (" + s.Detail + ")"
}

// Live is the [Reporter] for terminals. It redraws the steps in place.
type Live struct {
	w        io.Writer
	terminal TerminalOptions
	now      func() time.Time
	start    time.Time
	drawn    int
	ended    map[string]time.Duration
}

// TerminalOptions are the capabilities of the terminal. Package cli/term fills them in for the reporter of a command.
type TerminalOptions struct {
	// Width is the width in columns to which lines are truncated; 0 for no limit.
	Width int
	// Unicode marks completed steps with a tick instead of ASCII.
	Unicode bool
	// Color colors the marks.
	Color bool
}

// NewLive returns a reporter that displays the time elapsed since now. Package cli/term calls it if the output is a
// terminal.
func NewLive(w io.Writer, look TerminalOptions, now func() time.Time) *Live {
	return &Live{w: w, terminal: look, now: now, start: now(), ended: map[string]time.Duration{}}
}

// Show implements Reporter.
func (l *Live) Show(steps []Step) {
	elapsed := l.now().Sub(l.start)
	var out strings.Builder
	if l.drawn > 0 {
		fmt.Fprintf(&out, "\x1b[%dA", l.drawn)
	}
	widest := 0
	for _, s := range steps {
		widest = max(widest, utf8.RuneCountInString(s.Name))
	}
	for _, s := range steps {
		s.Name, s.Detail = redact.Escape(s.Name), redact.Escape(s.Detail)
		at := elapsed
		if ended, ok := l.ended[s.Name]; s.Done && ok {
			at = ended
		} else if s.Done {
			l.ended[s.Name] = elapsed
		}
		text := fmt.Sprintf("%-*s %6s  %s", widest, s.Name, Elapsed(at), s.Detail)
		if s.Detail == "" && !s.Done {
			text += "until " + s.DoneWhen
		}
		out.WriteString("\r\x1b[2K" + l.mark(s) + " " + l.cut(text) + "\n")
	}
	if l.drawn > len(steps) {
		out.WriteString("\x1b[J")
	}
	l.drawn = len(steps)
	_, _ = io.WriteString(l.w, out.String())
}

func (l *Live) mark(s Step) string {
	mark, paint := "*", "\x1b[33m"
	switch {
	case s.Done && l.terminal.Unicode:
		mark, paint = "✓", "\x1b[32m"
	case s.Done:
		mark, paint = "+", "\x1b[32m"
	case l.terminal.Unicode:
		mark = "•"
	}
	if !l.terminal.Color {
		return mark
	}
	return paint + mark + "\x1b[0m"
}

// cut truncates a line to the width of the terminal, because redrawing requires that each line occupies one row.
func (l *Live) cut(text string) string {
	text = strings.TrimRight(text, " ")
	room := l.terminal.Width - 3
	if l.terminal.Width <= 0 {
		return text
	}
	return cut(text, room, "~")
}

// cut truncates a text to room characters; mark replaces the last one of a truncated text.
func cut(text string, room int, mark string) string {
	switch {
	case utf8.RuneCountInString(text) <= room:
		return text
	case room <= 0:
		return ""
	}
	return string([]rune(text)[:room-1]) + mark
}

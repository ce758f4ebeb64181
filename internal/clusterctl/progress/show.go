package progress

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Plain prints one line per change of a step, and what ends a wait with its first line: for logs and pipes.
type Plain struct {
	w     io.Writer
	now   func() time.Time
	start time.Time
	last  []Step
}

// NewPlain returns a reporter; times count from now.
func NewPlain(w io.Writer, now func() time.Time) *Plain {
	return &Plain{w: w, now: now, start: now()}
}

// Show implements Reporter.
func (p *Plain) Show(steps []Step) {
	at := Elapsed(p.now().Sub(p.start))
	for _, s := range steps {
		i := slices.IndexFunc(p.last, func(l Step) bool { return l.Name == s.Name })
		switch {
		case i < 0 || p.last[i].Done != s.Done:
			_, _ = fmt.Fprintf(p.w, "%6s  %s\n", at, s)
		case p.last[i].Detail != s.Detail && s.Detail != "":
			_, _ = fmt.Fprintf(p.w, "%6s  %s: %s\n", at, s.Name, s.Detail)
		}
	}
	p.last = slices.Clone(steps)
}

// String is the step as one line.
func (s Step) String() string {
	switch {
	case s.Done && s.Detail == "":
		return s.Name + ": done"
	case s.Done:
		return s.Name + ": done, " + s.Detail
	case s.Detail == "":
		return s.Name + ": waits until " + s.Ends
	}
	return s.Name + ": waits until " + s.Ends + " (" + s.Detail + ")"
}

// Live redraws the steps in place: for terminals.
type Live struct {
	w     io.Writer
	look  Look
	now   func() time.Time
	start time.Time
	drawn int
	ended map[string]time.Duration
}

// Look is what the terminal can do.
type Look struct {
	// Width in columns; lines are cut to it. 0: they are not.
	Width int
	// Unicode marks steps with a tick instead of ASCII.
	Unicode bool
	// Color paints the marks.
	Color bool
}

// NewLive returns a reporter; times count from now.
func NewLive(w io.Writer, look Look, now func() time.Time) *Live {
	return &Live{w: w, look: look, now: now, start: now(), ended: map[string]time.Duration{}}
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
		at := elapsed
		if ended, ok := l.ended[s.Name]; s.Done && ok {
			at = ended
		} else if s.Done {
			l.ended[s.Name] = elapsed
		}
		text := fmt.Sprintf("%-*s %6s  %s", widest, s.Name, Elapsed(at), s.Detail)
		if s.Detail == "" && !s.Done {
			text += "until " + s.Ends
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
	case s.Done && l.look.Unicode:
		mark, paint = "✓", "\x1b[32m"
	case s.Done:
		mark, paint = "+", "\x1b[32m"
	case l.look.Unicode:
		mark = "•"
	}
	if !l.look.Color {
		return mark
	}
	return paint + mark + "\x1b[0m"
}

// cut keeps a line on one row, because rows are counted to draw in place.
func (l *Live) cut(text string) string {
	text = strings.TrimRight(text, " ")
	room := l.look.Width - 3
	if l.look.Width <= 0 || utf8.RuneCountInString(text) <= room {
		return text
	}
	if room <= 0 {
		return ""
	}
	return string([]rune(text)[:room-1]) + "~"
}

package term

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/slipwayhq/slipway/internal/operate/progress"
	"github.com/slipwayhq/slipway/internal/redact"
)

// Screen describes the capabilities of a writer, such as standard output. Commands get it from [DetectScreen].
type Screen struct {
	// Live is true for a terminal whose lines can be overwritten.
	Live bool
	// Unicode is true for a terminal whose locale does not exclude box characters.
	Unicode bool
	// Color is true for a terminal unless NO_COLOR is set, and for other writers if CLICOLOR_FORCE is set.
	Color bool
	// Width and Height are the size of the terminal in columns and lines; 0: unknown, or not a terminal.
	Width, Height int
}

// DetectScreen returns the capabilities of w.
func DetectScreen(e Env, w io.Writer) Screen {
	s := screenOf(e.Getenv, isTerminal(w))
	if f, ok := Unescaped(w).(*os.File); ok && s.Live {
		if width, height, err := term.GetSize(int(f.Fd())); err == nil {
			s.Width, s.Height = width, height
		}
	}
	return s
}

func screenOf(getenv func(string) string, terminal bool) Screen {
	live := terminal && getenv("TERM") != "dumb"
	s := Screen{Live: live, Unicode: live && !asciiOnly(getenv), Color: live}
	if force := getenv("CLICOLOR_FORCE"); force != "" && force != "0" {
		s.Color = true
	}
	if getenv("NO_COLOR") != "" {
		s.Color = false
	}
	return s
}

// Fit returns the first lines of a text that fit into some lines of the terminal, and the number of other lines. A line
// that is wider than the terminal takes several. Everything fits if the size is unknown. Lists with --watch call it,
// because a screen that scrolls cannot be overwritten.
func (s Screen) Fit(text string, lines int) (fitting string, others int) {
	if s.Width <= 0 || s.Height <= 0 {
		return text, 0
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		columns := utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))
		if lines -= max(1, (columns+s.Width-1)/s.Width); lines < 0 {
			others++
			continue
		}
		out.WriteString(line)
	}
	return out.String(), others
}

// asciiOnly reports whether the locale excludes box characters. A missing locale does not, because containers rarely
// set one.
func asciiOnly(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := getenv(name); v != "" {
			return v == "C" || v == "POSIX"
		}
	}
	return false
}

// escapedTerminal is a terminal that displays escaped control characters.
type escapedTerminal struct {
	*redact.EscapeWriter
	file *os.File
}

// escapeTerminal returns a writer that escapes control characters if f is a terminal, because output contains texts of
// users of the cluster. Other output is unchanged. [System] applies it to standard output and standard error.
func escapeTerminal(f *os.File) io.Writer {
	if !term.IsTerminal(int(f.Fd())) {
		return f
	}
	return escapedTerminal{redact.NewEscapeWriter(f), f}
}

// Unescaped returns the terminal behind a writer, for output that is already escaped (package redact), or else the
// writer itself. Commands that draw on the terminal or run another program on it call it.
func Unescaped(w io.Writer) io.Writer {
	if g, ok := w.(escapedTerminal); ok {
		return g.file
	}
	return w
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := Unescaped(w).(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Reporter returns a progress reporter for standard error: live lines on a terminal, one line per change elsewhere.
// Commands that wait for clusters or providers pass it to the wait.
func Reporter(e Env) progress.Reporter {
	s := DetectScreen(e, e.Err)
	if s.Live {
		return progress.NewLive(Unescaped(e.Err), progress.TerminalOptions{Width: s.Width, Unicode: s.Unicode, Color: s.Color}, e.Now)
	}
	return progress.NewPlain(e.Err, e.Now)
}

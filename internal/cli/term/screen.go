package term

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Screen describes the capabilities of a writer.
type Screen struct {
	// Live is true for a terminal whose lines can be overwritten.
	Live bool
	// Unicode is true for a terminal whose locale does not exclude box characters.
	Unicode bool
	// Color is true for a terminal unless NO_COLOR is set, and for other writers if CLICOLOR_FORCE is set.
	Color bool
	// Width is the width of the terminal in columns; 0: unknown, or not a terminal.
	Width int
}

// Of returns the capabilities of w.
func Of(e Env, w io.Writer) Screen {
	s := decide(e.Getenv, Terminal(w))
	if f, ok := Raw(w).(*os.File); ok && s.Live {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			s.Width = width
		}
	}
	return s
}

func decide(getenv func(string) string, terminal bool) Screen {
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

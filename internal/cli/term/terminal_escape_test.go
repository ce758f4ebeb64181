package term

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/term"

	"github.com/slipwayhq/slipway/test/testkit"
)

// A condition that another wrote does not clear the screen; what draws on it does.
func TestGuard(t *testing.T) {
	screen, program := testkit.Terminal(t)
	out := escapeTerminal(program)
	if !isTerminal(out) || !term.IsTerminal(int(Unescaped(out).(*os.File).Fd())) {
		t.Error("a terminal is none any more")
	}
	for _, c := range []struct {
		to   io.Writer
		want string
	}{{out, `down\x1b[2Jall is well`}, {Unescaped(out), "down\x1b[2Jall is well"}} {
		if _, err := io.WriteString(c.to, "down\x1b[2Jall is well\n"); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(screen).ReadString('\n')
		if line != c.want+"\r\n" || err != nil {
			t.Errorf("on the screen %q, %v, want %q", line, err, c.want)
		}
	}
}

// What goes into a file is what it is.
func TestGuardOfAFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if escapeTerminal(f) != io.Writer(f) || Unescaped(f) != io.Writer(f) || isTerminal(escapeTerminal(f)) {
		t.Error("a file is guarded")
	}
}

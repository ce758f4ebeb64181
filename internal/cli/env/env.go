// Package env is what a command sees of the world: streams, environment
// variables, the clock and the path of its own binary.
//
// Does: carries these as values, so that commands have no globals and tests
// set what they need.
//
// Never: knows verbs or flags.
//
// Read first: Env.
package env

import (
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/term"

	"github.com/slipwayhq/slipway/internal/plane/datadir"
)

// Env is passed to every Command builder.
type Env struct {
	In     io.Reader
	Out    io.Writer // results
	Err    io.Writer // progress, warnings, errors
	Getenv func(string) string
	Now    func() time.Time
	// Program is the name by which this program was called.
	Program string
	// Executable is the path of this binary, for commands that start it again.
	Executable func() (string, error)
}

// System is the environment of the running process.
func System() Env {
	return Env{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Now: time.Now, Program: filepath.Base(os.Args[0]), Executable: os.Executable}
}

// Terminal tells whether w is a terminal.
func Terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// DataDir is the data directory that a --data-dir flag means; empty is the default.
func (e Env) DataDir(flag string) (datadir.Dir, error) {
	if flag == "" {
		return datadir.Default(e.Getenv)
	}
	return datadir.Absolute(flag)
}

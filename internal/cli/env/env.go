// Package env is what a command sees of the world: streams, environment
// variables, the clock and the path of its own binary.
//
// Does: carries these as values, so that commands have no globals and tests
// set what they need; asks a person for a yes ([Env.Confirm]).
//
// Never: knows verbs or flags.
//
// Read first: Env.
package env

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/visible"
)

// Clusterctl is the name of a symbolic link to this program that makes it clusterctl.
const Clusterctl = "clusterctl"

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
	return Env{In: os.Stdin, Out: guard(os.Stdout), Err: guard(os.Stderr), Getenv: os.Getenv, Now: time.Now, Program: filepath.Base(os.Args[0]), Executable: os.Executable}
}

// Confirm asks on standard error whether to do something, and reads one line. Everything but a yes is an error.
func (e Env) Confirm(what string) error {
	_, _ = fmt.Fprintf(e.Err, "%s%s? [y/N] ", strings.ToUpper(what[:1]), what[1:])
	answer, err := bufio.NewReader(e.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("reading the answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return fault.New(fault.Invalid, "Usage", "nothing was changed: answer y to %s, or use --yes in scripts", what)
}

// guarded is a terminal on which text of others is shown and not obeyed.
type guarded struct {
	*visible.Writer
	file *os.File
}

func guard(f *os.File) io.Writer {
	if !term.IsTerminal(int(f.Fd())) {
		return f
	}
	return guarded{visible.NewWriter(f), f}
}

// Raw is the terminal behind a writer, for what draws on it and cleans the text itself (package visible); else the writer.
func Raw(w io.Writer) io.Writer {
	if g, ok := w.(guarded); ok {
		return g.file
	}
	return w
}

// Terminal tells whether w is a terminal.
func Terminal(w io.Writer) bool {
	f, ok := Raw(w).(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// DataDir is the data directory that a --data-dir flag means; empty is the default.
func (e Env) DataDir(flag string) (datadir.Dir, error) {
	if flag == "" {
		return datadir.Default(e.Getenv)
	}
	return datadir.Absolute(flag)
}

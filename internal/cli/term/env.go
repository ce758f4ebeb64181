package term

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Clusterctl is the name of a symbolic link to this program that makes it behave as clusterctl. Packages cli and
// management compare it with [Env.Program].
const Clusterctl = "clusterctl"

// Env is passed to every Command function. Commands take streams, variables and the clock from it, so that tests can
// replace each value.
type Env struct {
	In     io.Reader
	Out    io.Writer // results
	Err    io.Writer // progress, warnings, errors
	Getenv func(string) string
	Now    func() time.Time
	// Program is the name by which this program was called.
	Program string
	// Executable returns the path of this binary, for commands that start it again.
	Executable func() (string, error)
}

// System returns the environment of the current process, for the main function.
func System() Env {
	return Env{In: os.Stdin, Out: escapeTerminal(os.Stdout), Err: escapeTerminal(os.Stderr), Getenv: os.Getenv, Now: time.Now, Program: filepath.Base(os.Args[0]), Executable: os.Executable}
}

// Confirm prompts for confirmation on standard error and reads one line. Every answer except yes is an error.
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

// AddDataDirFlag adds the flag --data-dir; [Env.DataDir] returns the directory for its value.
func AddDataDirFlag(flags *pflag.FlagSet, value *string) {
	flags.StringVar(value, "data-dir", "", "data directory of Slipway (default: $XDG_DATA_HOME/slipway or ~/.local/share/slipway)")
}

// DataDir returns the data directory for the value of a --data-dir flag; an empty value selects the default.
func (e Env) DataDir(flag string) (datadir.Dir, error) {
	if flag == "" {
		return datadir.Default(e.Getenv)
	}
	return datadir.Absolute(flag)
}

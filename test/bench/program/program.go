package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/slipwayhq/slipway/internal/testkit/apiserver"
)

// Main parses the arguments and runs the command; interrupt and SIGTERM end its context. A failure is printed and ends the
// process with 1; to be asked for help is none.
func Main[O any](parse func(args []string) (O, error), run func(context.Context, O) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o, err := parse(os.Args[1:])
	if err == nil {
		err = run(ctx, o)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "error:", err)
		stop()
		os.Exit(1)
	}
}

// Binary is the absolute path of the binary to measure: the one at a path, or for "" that of apiserver.Binary.
func Binary(path string) (string, error) {
	if path == "" {
		return apiserver.Binary()
	}
	return filepath.Abs(path)
}

// Write writes a file, and makes the folder that it is in.
func Write(name string, content func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(content(f), f.Close())
}

// Beside is the name of a file with another extension (".svg").
func Beside(name, extension string) string {
	return strings.TrimSuffix(name, filepath.Ext(name)) + extension
}

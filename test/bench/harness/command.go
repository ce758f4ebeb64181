// Package harness contains the parts that all benchmarks share: management clusters and their removal, simulated clusters,
// watches, request counts, readings from /proc, and reports with tables, JSON, CSV and SVG charts.
package harness

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/testkit/apiserver"
)

// Options are the options and the report of every benchmark.
type Options struct {
	Binary, Out string
	Report      Report
}

// Command returns a subcommand with the common flags. The default output is dist/bench/FILE.
func (o *Options) Command(name, short, file string, run func(context.Context) error) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) (err error) {
		if o.Binary == "" {
			o.Binary, err = apiserver.Binary()
		} else {
			o.Binary, err = filepath.Abs(o.Binary)
		}
		if err != nil {
			return fmt.Errorf("find the slipway binary: %w", err)
		}
		return run(cmd.Context())
	}}
	cmd.Flags().StringVar(&o.Binary, "slipway", "", "the slipway binary (default: $SLIPWAY_BIN, else a new build)")
	cmd.Flags().StringVar(&o.Out, "out", filepath.Join("dist", "bench", file), "result file; further results are written beside it with other extensions")
	return cmd
}

// limited is a flag with a minimum.
type limited[T cmp.Ordered] struct {
	pflag.Value
	value   *T
	minimum T
}

// AtLeast sets the minimum of a flag.
func AtLeast[T cmp.Ordered](f *pflag.FlagSet, name string, value *T, minimum T) {
	flag := f.Lookup(name)
	flag.Value = &limited[T]{flag.Value, value, minimum}
}

func (l *limited[T]) Set(text string) error {
	if err := l.Value.Set(text); err != nil {
		return err
	}
	if *l.value < l.minimum {
		return fmt.Errorf("the minimum is %v", l.minimum)
	}
	return nil
}

// InOrder calls steps until one fails.
func InOrder(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Logf writes a line about the progress to standard error.
func (o *Options) Logf(format string, args ...any) {
	_, _ = fmt.Fprintf(os.Stderr, format+"\n", args...)
}

func (o *Options) Add(f ...Figure) { o.Report.Figures = append(o.Report.Figures, f...) }

// RunReport describes the machine before and after the measurements, prints the table and writes the report as JSON.
func (o *Options) RunReport(ctx context.Context, measurements ...func(context.Context) error) (err error) {
	if o.Report.Machine, err = DescribeMachine(ctx, o.Binary); err != nil {
		return err
	}
	if err := InOrder(ctx, measurements...); err != nil {
		return err
	}
	if err := o.Report.Machine.Finish(); err != nil {
		return err
	}
	return errors.Join(o.Report.WriteTable(os.Stdout), WriteFile(o.Out, o.Report.WriteJSON))
}

// WriteFile writes a file and creates its folder.
func WriteFile(name string, content func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := errors.Join(content(f), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func WriteCSV(name string, rows [][]string) error {
	return WriteFile(name, func(w io.Writer) error { return csv.NewWriter(w).WriteAll(rows) })
}

// Sibling is the name of a file with another extension (".svg").
func Sibling(name, extension string) string {
	return strings.TrimSuffix(name, filepath.Ext(name)) + extension
}

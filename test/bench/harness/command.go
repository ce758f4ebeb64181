// Package harness contains the parts that all benchmarks share: management clusters and their removal, simulated clusters,
// watches, request counts, readings from /proc, and reports with tables, JSON and SVG charts.
package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// Options are the options and the report of every benchmark.
type Options struct {
	Binary, Out string
	Report      Report
}

// Command returns a subcommand with the common flags. The default output is dist/bench/FILE. run may end with Check.
func (o *Options) Command(name, short, file string, run func(context.Context)) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return Try(func() {
			if o.Binary == "" {
				o.Binary = Must(apiserver.Binary())
			}
			o.Binary = Must(filepath.Abs(o.Binary))
			cmd.Flags().VisitAll(func(f *pflag.Flag) {
				if strings.HasPrefix(f.Value.String(), "-") {
					Failf("--%s must not be negative", f.Name)
				}
			})
			run(cmd.Context())
		})
	}}
	cmd.Flags().StringVar(&o.Binary, "slipway", "", "the slipway binary (default: $SLIPWAY_BIN, else a new build)")
	cmd.Flags().StringVar(&o.Out, "out", filepath.Join("dist", "bench", file), "result file; further results are written beside it with other extensions")
	return cmd
}

// Logf writes a line about the progress to standard error.
func (o *Options) Logf(format string, args ...any) {
	_, _ = fmt.Fprintf(os.Stderr, format+"\n", args...)
}

func (o *Options) Add(f ...Figure) { o.Report.Figures = append(o.Report.Figures, f...) }

// RunReport describes the machine before and after the measurements, prints the table and writes the report as JSON.
func (o *Options) RunReport(ctx context.Context, measurements ...func(context.Context)) {
	o.Report.Machine = DescribeMachine(ctx, o.Binary)
	for _, measure := range measurements {
		measure(ctx)
	}
	o.Report.Machine.Finish()
	fmt.Print(o.Report.Table())
	WriteJSON(o.Out, o.Report)
}

// WriteFile writes a file and creates its folder.
func WriteFile(name, text string) {
	Check(os.MkdirAll(filepath.Dir(name), 0o755))
	Check(os.WriteFile(name, []byte(text), 0o644))
}

func WriteJSON(name string, value any) {
	WriteFile(name, string(Must(json.MarshalIndent(value, "", "  ")))+"\n")
}

// Sibling is the name of a file with another extension (".svg").
func Sibling(name, extension string) string {
	return strings.TrimSuffix(name, filepath.Ext(name)) + extension
}

// A benchmark ends at the first error. Its steps therefore do not return errors: Check panics with a failure, deferred functions
// stop the processes, and Try, which Command calls, turns the panic into an error again. A panic ends the program if it leaves
// a goroutine. Steps that run concurrently are therefore started by InParallel, Together or Sampling.
type failure struct{ error }

// Check ends the benchmark unless err is nil.
func Check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Checkf is Check with a description of what was being done.
func Checkf(err error, format string, args ...any) {
	if err != nil {
		panic(failure{fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)})
	}
}

// Failf ends the benchmark with a new error.
func Failf(format string, args ...any) { Check(fmt.Errorf(format, args...)) }

func Must[T any](value T, err error) T {
	Check(err)
	return value
}

// Try returns the error with which do ended the benchmark.
func Try(do func()) (err error) {
	defer func() { err = recovered(recover()) }()
	do()
	return nil
}

// Close is deferred to clean up. It adds the error of the clean-up to the one that has ended the benchmark.
func Close(clean func() error) {
	value := recover()
	cleaned := clean() // even if a bug has ended the benchmark
	Check(errors.Join(recovered(value), cleaned))
}

func recovered(value any) error {
	switch v := value.(type) {
	case nil:
		return nil
	case failure:
		return v.error
	}
	panic(value)
}

// InParallel calls do for 0 to count-1, at most limit calls at a time. A limit of -1 is none.
func InParallel(ctx context.Context, count, limit int, do func(context.Context, int)) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(limit)
	for n := range count {
		group.Go(func() error { return Try(func() { do(ctx, n) }) })
	}
	Check(group.Wait())
}

// Together calls all functions at once.
func Together(ctx context.Context, all ...func(context.Context)) {
	InParallel(ctx, len(all), -1, func(ctx context.Context, n int) { all[n](ctx) })
}

// Sampling calls read at once and at an interval while do runs.
func Sampling(ctx context.Context, interval time.Duration, read, do func()) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	result := make(chan error, 1)
	go func() {
		err := Try(read)
		for err == nil && Wait(ctx, interval) == nil {
			err = Try(read)
		}
		result <- err
	}()
	err := Try(do)
	cancel()
	Check(errors.Join(err, <-result))
}

// Wait returns an error if ctx ends before the duration has passed.
func Wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Sleep waits and ends the benchmark if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) { Check(Wait(ctx, d)) }

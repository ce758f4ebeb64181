package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/benchmark/parse"

	"github.com/slipwayhq/slipway/test/bench/result"
)

// benchmarked are the packages whose Go benchmarks are run.
func benchmarked() []string {
	return []string{
		"./internal/controllers/cluster", "./internal/controllers/machinepool", "./internal/condition",
		"./internal/kubeadm/bootstrap/render", "./internal/conversion",
	}
}

// measureFunctions runs Go benchmarks.
func (b *bench) measureFunctions(ctx context.Context) error {
	b.say("running the benchmarks of the pure parts …")
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-run", "^$", "-bench", ".", "-benchmem"}, benchmarked()...)...)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go test: %w: %s%s", err, out.String(), problem.String())
	}
	all, err := parseFunctions(out.String())
	if err != nil {
		return err
	}
	b.report.Functions = all
	return nil
}

// parseFunctions reads what go test -bench -benchmem prints of several packages.
func parseFunctions(text string) ([]result.Function, error) {
	var out []result.Function
	processors := regexp.MustCompile(`-\d+$`)
	folder := ""
	for _, line := range strings.Split(text, "\n") {
		if name, ok := strings.CutPrefix(line, "pkg: "); ok {
			folder = name[strings.LastIndexByte(name, '/')+1:]
		}
		if !strings.HasPrefix(line, "Benchmark") {
			continue
		}
		b, err := parse.ParseLine(line)
		if err != nil {
			return nil, fmt.Errorf("read benchmark %q: %w", line, err)
		}
		if b.Measured&parse.NsPerOp == 0 || b.Measured&parse.AllocsPerOp == 0 || b.Measured&parse.AllocedBytesPerOp == 0 {
			return nil, fmt.Errorf("benchmark %q does not say time and memory", line)
		}
		name := processors.ReplaceAllString(strings.TrimPrefix(b.Name, "Benchmark"), "")
		out = append(out, result.Function{
			Name: folder + "." + name, Nanoseconds: b.NsPerOp, Bytes: b.AllocedBytesPerOp, Allocations: b.AllocsPerOp,
		})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there are no benchmarks")
	}
	slices.SortFunc(out, func(a, b result.Function) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

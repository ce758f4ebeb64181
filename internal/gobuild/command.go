package gobuild

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// errorLines is how much of a failed command's output an error shows.
const errorLines = 15

// Command is a program to run. Its standard error is kept for the error only.
type Command struct {
	Dir  string
	Env  []string
	Args []string
	// Lines is called with the number of lines on standard error so far, from one goroutine at a time. Where it is set, lines of one word
	// (go build -v names each package) tell of progress, and are not in the error.
	Lines func(n int)
}

// Run returns the standard output.
func (c Command) Run(ctx context.Context) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Dir = c.Dir
	cmd.Env = append(os.Environ(), c.Env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if c.Lines != nil {
		cmd.Stderr = &counter{to: &errs, tell: c.Lines}
	}
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		said := errs.String()
		if c.Lines != nil {
			said = withoutProgress(said)
		}
		// Not wrapped: the exit code of this program says nothing to who runs ours.
		return nil, fmt.Errorf("%s: %v\n%s", strings.Join(c.Args[:min(3, len(c.Args))], " "), err, Tail(said+out.String()))
	}
	return out.Bytes(), nil
}

// withoutProgress drops the lines that are one word.
func withoutProgress(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if strings.Contains(strings.TrimSpace(line), " ") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// Tail returns the last lines of a text.
func Tail(text string) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-errorLines):], "\n")
}

// counter tells how many lines were written.
type counter struct {
	to   *bytes.Buffer
	n    int
	tell func(int)
}

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	c.n += bytes.Count(p, []byte("\n"))
	c.tell(c.n)
	return c.to.Write(p)
}

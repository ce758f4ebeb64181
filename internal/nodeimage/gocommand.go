package nodeimage

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// errorLines limits the lines of a failed command's output in an error.
const errorLines = 15

// command is a program that a build runs on this host, such as go or mmdebstrap. Its standard error is used only for
// the error. Go runs through [BuildCache.goCommand] or [GoToolchain.Build].
type command struct {
	Dir  string
	Env  []string
	Args []string
	// Lines is called with the number of lines on standard error so far, from one goroutine at a time. If it is set,
	// lines of one word count as progress (go build -v prints the name of each package) and are not part of the error.
	Lines func(n int)
}

// Run runs the command and returns its standard output.
func (c command) Run(ctx context.Context) ([]byte, error) {
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Dir = c.Dir
	cmd.Env = append(os.Environ(), c.Env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if c.Lines != nil {
		cmd.Stderr = &counter{to: &errs, report: c.Lines}
	}
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		said := errs.String()
		if c.Lines != nil {
			said = withoutProgress(said)
		}
		// Not wrapped, because callers must not use the exit code of the command as their own.
		return nil, fmt.Errorf("%s: %v\n%s", strings.Join(c.Args[:min(3, len(c.Args))], " "), err, lastLines(said+out.String()))
	}
	return out.Bytes(), nil
}

// withoutProgress removes the lines of one word.
func withoutProgress(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if strings.Contains(strings.TrimSpace(line), " ") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// lastLines returns the last lines of a text.
func lastLines(text string) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-errorLines):], "\n")
}

// counter counts the written lines and reports the count.
type counter struct {
	to     *bytes.Buffer
	n      int
	report func(int)
}

func (c *counter) Write(p []byte) (int, error) {
	c.n += bytes.Count(p, []byte("\n"))
	c.report(c.n)
	return c.to.Write(p)
}

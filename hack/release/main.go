// Command release writes a release of Slipway into a folder; `make release` calls it. It reads the flags and checks
// that the binary has the version that is released. Package internal/release defines the content of a release.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/internal/release"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	c := release.Config{Sources: os.DirFS(".")}
	flag.StringVar(&c.Dir, "dir", "dist", "folder to write to")
	flag.StringVar(&c.Version, "version", "", "version to release, for example v0.1.0")
	flag.StringVar(&c.Image, "image", "", "image of the manager, without a tag")
	flag.StringVar(&c.Binary, "binary", "bin/slipway", "the program")
	when := flag.String("time", "", "time of the commit, RFC 3339")
	flag.Parse()
	var err error
	if c.Time, err = time.Parse(time.RFC3339, *when); err != nil {
		return fmt.Errorf("-time: %w", err)
	}
	version, err := exec.CommandContext(ctx, c.Binary, "version", "--output", "short").Output()
	if err != nil {
		return fmt.Errorf("read the version of %s: %w", c.Binary, err)
	}
	if got := strings.TrimSpace(string(version)); got != c.Version {
		return fmt.Errorf("%s is version %s, not %s: build it with VERSION=%s", c.Binary, got, c.Version, c.Version)
	}
	return release.Write(ctx, c)
}

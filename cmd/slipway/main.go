// Command slipway runs Kubernetes clusters from one binary. Package internal/cli contains all commands.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/slipwayhq/slipway/internal/cli"
	"github.com/slipwayhq/slipway/internal/cli/term"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal terminates the program at once
	code := cli.Run(ctx, os.Args[1:], term.System())
	stop()
	os.Exit(code)
}

// Command program runs the Kubernetes components of one hosted control plane in a version that differs from the version
// in the slipway binary. It is package components in a process that package childproc starts. Package
// internal/nodeimage/versions compiles it with the Kubernetes modules of that version. It is not started by hand and
// not part of the slipway binary. The sources of all packages of Slipway that it imports are embedded in the binary
// (sources.go in the root directory).
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/slipwayhq/slipway/internal/controlplane/childproc"
	"github.com/slipwayhq/slipway/internal/controlplane/components"
	"github.com/slipwayhq/slipway/internal/heap"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var cfg components.Config
	parent, listener, err := childproc.Receive(os.Stdin, &cfg)
	if err != nil {
		return err
	}
	started := heap.TuneForStartup(heap.StartWorkloadMemory)
	c, err := components.New(cfg, listener)
	if err != nil {
		return err
	}
	if err := parent.AwaitRun(); err != nil {
		return err
	}
	return c.Run(ctx, func() {
		started()
		heap.Collect(heap.Workload())
		parent.Ready()
	})
}

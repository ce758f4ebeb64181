package components

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// Scheduler is a configured kube-scheduler of a management cluster with nodes or of a workload cluster. It is not
// running yet. The imported APIs must exist in several Kubernetes versions (doc.go).
type Scheduler struct {
	options *options.Options
}

// NewScheduler parses args, which are kube-scheduler flags. The serving port and leader election are disabled, because
// there is one scheduler for each control plane. [New] calls it, and package controlplane for a management cluster with
// nodes.
func NewScheduler(args []string) (*Scheduler, error) {
	o := options.NewOptions()
	fs := pflag.NewFlagSet("kube-scheduler", pflag.ContinueOnError)
	for _, set := range o.Flags.FlagSets {
		fs.AddFlagSet(set)
	}
	if err := fs.Parse(append([]string{"--secure-port=0", "--leader-elect=false"}, args...)); err != nil {
		return nil, fmt.Errorf("kube-scheduler flags: %w", err)
	}
	return &Scheduler{options: o}, nil
}

// Run runs the scheduler until ctx ends or it fails. The API server must be ready.
func (s *Scheduler) Run(ctx context.Context) error {
	config, sched, err := app.Setup(ctx, s.options)
	if err != nil {
		return fmt.Errorf("start kube-scheduler: %w", err)
	}
	return app.Run(ctx, config, sched)
}

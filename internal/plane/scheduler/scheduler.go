package scheduler

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// Scheduler is a kube-scheduler that was configured and does not run yet.
type Scheduler struct {
	options *options.Options
}

// New parses args, which are kube-scheduler's flags. A serving port and leader
// election are switched off: there is one scheduler per control plane.
func New(args []string) (*Scheduler, error) {
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

// Run schedules until ctx ends or the scheduler fails. The API server must
// answer when it is called.
func (s *Scheduler) Run(ctx context.Context) error {
	config, sched, err := app.Setup(ctx, s.options)
	if err != nil {
		return fmt.Errorf("start kube-scheduler: %w", err)
	}
	return app.Run(ctx, config, sched)
}

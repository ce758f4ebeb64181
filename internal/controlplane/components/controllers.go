package components

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
)

// ControllerManager is a configured kube-controller-manager of a management or workload cluster that is not running
// yet. The imported APIs must exist in several Kubernetes versions (doc.go).
type ControllerManager struct {
	options *options.KubeControllerManagerOptions
}

// NewControllerManager parses args, which are kube-controller-manager flags. The serving port and leader election are
// disabled, because there is one manager for each control plane. [New] and package controlplane call it.
func NewControllerManager(args []string) (*ControllerManager, error) {
	o, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, fmt.Errorf("kube-controller-manager options: %w", err)
	}
	sets := o.Flags(app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases())
	o.ParsedFlags = &sets
	fs := pflag.NewFlagSet("kube-controller-manager", pflag.ContinueOnError)
	for _, set := range sets.FlagSets {
		fs.AddFlagSet(set)
	}
	if err := fs.Parse(append([]string{"--secure-port=0", "--leader-elect=false"}, args...)); err != nil {
		return nil, fmt.Errorf("kube-controller-manager flags: %w", err)
	}
	return &ControllerManager{options: o}, nil
}

// Run runs the controllers until ctx ends or they fail. The API server must be ready.
func (m *ControllerManager) Run(ctx context.Context) error {
	config, err := m.options.Config(ctx, app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases())
	if err != nil {
		return fmt.Errorf("start kube-controller-manager: %w", err)
	}
	return app.Run(ctx, config.Complete())
}

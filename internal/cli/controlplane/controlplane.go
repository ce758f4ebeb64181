// Package controlplane is the hidden verb "control-plane": the process of one
// hosted control plane.
//
// Does: runs the control plane that a configuration file describes, in the
// foreground, and turns its log over.
//
// Never: is called by users; internal/plane/process starts it.
//
// Read first: Command.
package controlplane

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/heap"
	"github.com/slipwayhq/slipway/internal/plane"
	"github.com/slipwayhq/slipway/internal/plane/logfile"
	"github.com/slipwayhq/slipway/internal/plane/workload"
	"github.com/slipwayhq/slipway/internal/releases"
)

// Command builds the verb.
func Command(e env.Env) *cobra.Command {
	var config, folder string
	run := &cobra.Command{
		Use:   "run --config FILE",
		Short: "Run the control plane of one workload cluster",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runPlane(cmd.Context(), e, config, folder)
		},
	}
	run.Flags().StringVar(&config, "config", "", "configuration, in the control plane's folder")
	run.Flags().StringVar(&folder, "releases", "", "folder of the Kubernetes versions besides that of this build")
	_ = run.MarkFlagRequired("config")
	cmd := &cobra.Command{Use: "control-plane", Short: "The process of one hosted control plane", Hidden: true}
	cmd.AddCommand(run)
	return cmd
}

func runPlane(ctx context.Context, e env.Env, path, releasesFolder string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	c, err := workload.Load(path)
	if err != nil {
		return err
	}
	place := workload.Folder(filepath.Dir(path))
	if err := os.Chdir(string(place)); err != nil {
		return err
	}
	folder := workload.Here                       // it may be handed over to another data directory while this process runs
	_ = heap.ResetVictim(heap.VictimControlPlane) // the manager's, which started this process, is higher
	go logfile.Watch(ctx, folder.Log())
	return plane.RunWorkload(ctx, plane.WorkloadConfig{
		Config: c, Folder: folder, Place: place, Now: e.Now, Program: releases.Local(releasesFolder).Program,
	})
}

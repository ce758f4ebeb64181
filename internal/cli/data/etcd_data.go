package data

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/etcd"
)

// EtcdDataCommand returns the hidden etcd-data command. kubeadm/recovery/stage.sh runs it on the node of a control
// plane Machine before the restore of a snapshot, so its name and flags must match that script.
func EtcdDataCommand(term.Env) *cobra.Command {
	var file, folder string
	var member etcd.Identity
	cmd := &cobra.Command{
		Use: "etcd-data", Short: "Create an etcd data directory from a snapshot", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return etcd.CreateDataDir(file, folder, member) },
	}
	for _, flag := range []struct {
		to          *string
		name, usage string
	}{
		{&file, "snapshot", "file with the snapshot"},
		{&folder, "data-dir", "directory to create; it must not exist"},
		{&member.Name, "name", "name of the member"},
		{&member.PeerURL, "peer-url", "peer URL of the member"},
		{&member.Token, "token", "token from which the ID of the new cluster is derived"},
	} {
		cmd.Flags().StringVar(flag.to, flag.name, "", flag.usage)
		_ = cmd.MarkFlagRequired(flag.name)
	}
	return cmd
}

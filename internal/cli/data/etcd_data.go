package data

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/etcd"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
)

// EtcdDataCommand returns the etcd-data command.
func EtcdDataCommand(term.Env) *cobra.Command {
	var file, folder string
	var member etcd.Identity
	cmd := &cobra.Command{
		Use: "etcd-data", Short: "Make a data folder of etcd of a snapshot", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return processconfig.CreateDataDir(file, folder, member) },
	}
	for _, flag := range []struct {
		to          *string
		name, usage string
	}{
		{&file, "snapshot", "file with the snapshot"},
		{&folder, "data-dir", "folder to make; it must not exist"},
		{&member.Name, "name", "name of the member"},
		{&member.PeerURL, "peer-url", "where other members reach it"},
		{&member.Token, "token", "what the ID of the new cluster is made of"},
	} {
		cmd.Flags().StringVar(flag.to, flag.name, "", flag.usage)
		_ = cmd.MarkFlagRequired(flag.name)
	}
	return cmd
}

// Package etcddata is the hidden verb "etcd-data": a data folder of etcd from a snapshot.
//
// Does: makes the folder, for the only member of a new cluster. It runs on the node whose member that is: what a snapshot has in it is the
// tenant's, and a damaged one can end the process that opens it.
//
// Never: is called by users; the programs of package recovery call it.
//
// Read first: Command.
package etcddata

import (
	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/plane/etcd"
	"github.com/slipwayhq/slipway/internal/plane/restore"
)

// Command builds the verb.
func Command(env.Env) *cobra.Command {
	var file, folder string
	var member etcd.Identity
	cmd := &cobra.Command{
		Use: "etcd-data", Short: "Make a data folder of etcd of a snapshot", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return restore.MakeData(file, folder, member) },
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

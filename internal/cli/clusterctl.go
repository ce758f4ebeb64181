package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
)

// clusterctlVerbs returns the commands of clusterctl: the only commands of the program if it is called as clusterctl,
// and the commands that accept the global flags of clusterctl. Existing scripts depend on their names and flags.
func clusterctlVerbs() []string {
	return []string{
		"alpha rollout pause", "alpha rollout restart", "alpha rollout resume", "completion", "config repositories", "convert", "delete",
		"describe cluster", "generate cluster", "generate provider", "generate yaml", "get kubeconfig", "init", "init list-images", "move",
		"upgrade apply", "upgrade plan", "version",
	}
}

// newClusterctlRoot returns the root command with only the commands of clusterctl, for [Run].
func newClusterctlRoot(e term.Env) *cobra.Command {
	root := newRoot(e)
	root.Use, root.Short = term.Clusterctl, "The commands of clusterctl, provided by Slipway "+buildinfo.Version()
	root.PersistentFlags().String("config", "", "path or https URL of the configuration file (default: $XDG_CONFIG_HOME/cluster-api/clusterctl.yaml)")
	root.PersistentFlags().IntP("v", "v", 0, "accepted for compatibility with clusterctl; has no effect")
	for _, verb := range verbs() {
		cmd := verb(e)
		if prune(cmd, cmd.Name()) {
			root.AddCommand(cmd)
		}
	}
	return root
}

// unknownVerb returns an error with the equivalent slipway command for a command that clusterctl does not have. [Run]
// calls it when cobra finds no command.
func unknownVerb(e term.Env, args []string, err error) error {
	for _, cmd := range newSlipwayRoot(e).Commands() {
		if cmd.Hidden || !slices.Contains(args, cmd.Name()) || !strings.HasPrefix(err.Error(), fmt.Sprintf("unknown command %q", cmd.Name())) {
			continue
		}
		if cmd.Name() == "rollout" {
			return fault.New(fault.Invalid, "Usage", "clusterctl has rollout below alpha: clusterctl alpha rollout restart, pause or resume")
		}
		return fault.New(fault.Invalid, "Usage", "clusterctl has no verb %q; \"slipway %s\" has it: under that name, the program has more commands", cmd.Name(), cmd.Name())
	}
	return err
}

// prune removes the subcommands that clusterctl does not have, and reports whether the command remains. Hidden commands
// remain: they handle commands that clusterctl had in earlier versions.
func prune(cmd *cobra.Command, path string) bool {
	isGroup := cmd.HasSubCommands() && !cmd.HasLocalFlags()
	for _, sub := range cmd.Commands() {
		if !sub.Hidden && !prune(sub, path+" "+sub.Name()) {
			cmd.RemoveCommand(sub)
		}
	}
	if flag := cmd.Flags().Lookup(management.KubeconfigFlag); flag != nil && flag.Usage == management.KubeconfigUsage {
		flag.Usage = "path to the kubeconfig of the management cluster (default: $KUBECONFIG, else the kubeconfig of the data directory)"
	}
	cmd.Example, cmd.Long, cmd.Short = replaceProgramName(clusterctlExamples(cmd.Example)), replaceProgramName(cmd.Long), replaceProgramName(cmd.Short)
	if isGroup && !cmd.HasSubCommands() {
		return false
	}
	return slices.ContainsFunc(clusterctlVerbs(), func(v string) bool { return v == path || strings.HasPrefix(v, path+" ") })
}

// clusterctlExamples returns the lines of the examples whose command exists in clusterctl.
func clusterctlExamples(example string) string {
	var out []string
	for line := range strings.SplitSeq(example, "\n") {
		verb, isVerb := strings.CutPrefix(strings.TrimSpace(line), "slipway ")
		if !isVerb || slices.ContainsFunc(clusterctlVerbs(), func(v string) bool {
			return verb == v || strings.HasPrefix(verb, v+" ") && !strings.HasPrefix(verb, "delete cluster")
		}) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// replaceProgramName replaces the program name in the commands in a text with clusterctl.
func replaceProgramName(text string) string {
	var pairs []string
	for _, verb := range clusterctlVerbs() {
		first, _, _ := strings.Cut(verb, " ")
		pairs = append(pairs, "slipway "+first+" ", term.Clusterctl+" "+first+" ")
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// acceptFlags adds the global flags of clusterctl to its commands. newSlipwayRoot calls it when all commands are added.
func acceptFlags(root *cobra.Command) {
	for _, verb := range clusterctlVerbs() {
		cmd, rest, err := root.Find(strings.Fields(verb))
		if err != nil || len(rest) > 0 {
			continue // this build does not have the clusterctl command
		}
		flags := cmd.Flags()
		if cmd.Flag("config") == nil {
			flags.String("config", "", "accepted for compatibility with clusterctl; this command reads no configuration file")
			_ = flags.MarkHidden("config")
		}
		if cmd.Flag("v") == nil {
			flags.IntP("v", "v", 0, "accepted for compatibility with clusterctl; has no effect")
			_ = flags.MarkHidden("v")
		}
	}
}

// Package plugin runs programs in PATH as verbs.
//
// Does: for a verb that does not exist, runs the program in PATH whose name begins with that of this one: "slipway foo bar" is
// slipway-foo-bar, else slipway-foo with the argument bar. Plugins of clusterctl (clusterctl-foo) are found as well.
//
// Never: takes the place of a verb that exists.
//
// Read first: [Run].
package plugin

import (
	"strings"

	"github.com/spf13/cobra"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
)

// Run becomes the program of a plugin, if root has no verb for the arguments and there is one. It returns when there is none.
func Run(root *cobra.Command, args []string, prefixes []string) error {
	if !isUnknown(root, args) {
		return nil
	}
	return kubectlcmd.HandlePluginCommand(kubectlcmd.NewDefaultPluginHandler(prefixes), args, 1)
}

// isUnknown reports whether the arguments begin with a word that is no verb. Flags before the verb of a plugin belong to nothing.
func isUnknown(root *cobra.Command, args []string) bool {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return false
	}
	switch args[0] {
	case "help", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd: // cobra adds these when it runs
		return false
	}
	_, _, err := root.Find(args)
	return err != nil
}

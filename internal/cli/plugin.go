package cli

import (
	"strings"

	"github.com/spf13/cobra"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
)

// runPlugin replaces this process with a plugin if root has no command for the arguments and there is such a plugin;
// otherwise it returns. [Run] calls it first. The name of a plugin begins with one of the prefixes and a hyphen.
func runPlugin(root *cobra.Command, args []string, prefixes []string) error {
	if !isUnknown(root, args) {
		return nil
	}
	return kubectlcmd.HandlePluginCommand(kubectlcmd.NewDefaultPluginHandler(prefixes), args, 1)
}

// isUnknown reports whether the first argument is not a command. Plugins cannot have flags before their name.
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

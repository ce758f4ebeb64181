package cluster

import (
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
)

// kubectlArguments are the arguments of "slipway kubectl", and the parts that this program interprets.
type kubectlArguments struct {
	// rest contains the arguments for kubectl.
	rest []string
	// dataDir is the value of --data-dir, which is removed from rest.
	dataDir string
	// explicit is true if the arguments select the API server.
	explicit bool
	// offline is true if the command needs no API server.
	offline bool
}

// parseKubectlArguments removes --data-dir from the arguments. Arguments after "--" are not interpreted, because they
// belong to a program in a container. The command and its shell completion call it first.
func parseKubectlArguments(args []string) (kubectlArguments, error) {
	var a kubectlArguments
	command := ""
	for i := 0; i < len(args); i++ {
		arg := args[i]
		name, value, assigned := strings.Cut(arg, "=")
		switch {
		case arg == "--":
			a.rest = append(a.rest, args[i:]...)
			i = len(args)
			continue
		case name == "--data-dir":
			if !assigned {
				if i++; i == len(args) {
					return a, fault.New(fault.Invalid, "Usage", "--data-dir needs a directory")
				}
				value = args[i]
			}
			a.dataDir = value
			continue
		case slices.Contains([]string{"--kubeconfig", "--server", "-s"}, name):
			a.explicit = true
		case slices.Contains([]string{"--help", "-h"}, arg), arg == "--client", arg == "--client=true":
			a.offline = true
		case command == "" && !strings.HasPrefix(arg, "-"):
			command = arg
		}
		a.rest = append(a.rest, arg)
		if !assigned && hasSeparateValue(arg) && i+1 < len(args) {
			i++
			a.rest = append(a.rest, args[i])
		}
	}
	// commands of kubectl that need no API server, and cobra's completion commands
	local := []string{"", "help", "completion", "config", "kustomize", "options", "plugin", "__complete", "__completeNoDesc"}
	a.offline = a.offline || slices.Contains(local, command)
	return a, nil
}

// valueFlags are the flags of all commands of kubectl whose value can be the next argument, so that it is not the
// command.
var valueFlags = []string{
	"--as", "--as-group", "--as-uid", "--as-user-extra", "--cache-dir", "--certificate-authority", "--client-certificate", "--client-key", "--cluster", "--context",
	"--kubeconfig", "--kuberc", "--log-flush-frequency", "--namespace", "-n", "--password", "--profile", "--profile-output", "--request-timeout", "--server", "-s",
	"--tls-server-name", "--token", "--user", "--username", "--v", "-v", "--vmodule",
}

// hasSeparateValue reports whether the argument after a flag is its value. checkKubectlRollout calls it, too.
func hasSeparateValue(flag string) bool { return slices.Contains(valueFlags, flag) }

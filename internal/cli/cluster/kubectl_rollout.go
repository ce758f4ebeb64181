package cluster

import (
	"slices"
	"strings"

	"github.com/slipwayhq/slipway/internal/fault"
)

// rolloutCommands maps the subcommands of "kubectl rollout" to the slipway commands for Cluster API kinds.
var rolloutCommands = map[string]string{
	"restart": "slipway rollout restart", "pause": "slipway rollout pause", "resume": "slipway rollout resume", "status": "slipway rollout status",
}

// checkKubectlRollout rejects "slipway kubectl rollout" for Cluster API kinds, which kubectl does not support. The
// error contains the slipway command to use. The command calls it before it runs kubectl.
func checkKubectlRollout(args []string) error {
	var words []string
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		switch {
		case hasSeparateValue(args[i]):
			i++
		case !strings.HasPrefix(args[i], "-"):
			words = append(words, args[i])
		}
	}
	if len(words) < 3 || words[0] != "rollout" || rolloutCommands[words[1]] == "" {
		return nil
	}
	kind, name, joined := strings.Cut(words[2], "/")
	if !joined {
		name = "NAME"
		if len(words) > 3 {
			name = words[3]
		}
	}
	resource, _, _ := strings.Cut(strings.ToLower(kind), ".")
	for singular, names := range map[string][]string{
		"machinedeployment":   {"md", "machinedeployment", "machinedeployments"},
		"kubeadmcontrolplane": {"kcp", "kubeadmcontrolplane", "kubeadmcontrolplanes"},
	} {
		if slices.Contains(names, resource) {
			return fault.New(fault.Invalid, "Usage", "kubectl has no rollouts of the kind %s; \"%s %s/%s\" does it", singular, rolloutCommands[words[1]], singular, name)
		}
	}
	return nil
}

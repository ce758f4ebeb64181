package release

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/component-base/featuregate"

	"github.com/slipwayhq/slipway/internal/providerset"
)

// gateVariables returns the environment variables by which users of Cluster API set feature gates in the components of
// its providers. clusterctl replaces them when it installs a provider. The names are Cluster API's and must not change;
// a test checks that every gate has one.
func gateVariables() map[featuregate.Feature]string {
	return map[featuregate.Feature]string{
		providerset.GateMachinePool:               "EXP_MACHINE_POOL",
		providerset.GateMachineSetPreflightChecks: "EXP_MACHINE_SET_PREFLIGHT_CHECKS",
		providerset.GatePriorityQueue:             "EXP_PRIORITY_QUEUE",
		providerset.GateReconcilerRateLimiting:    "EXP_RECONCILER_RATE_LIMITING",
		providerset.GateVolumeAttachments:         "EXP_MACHINE_WAITFORVOLUMEDETACH_CONSIDER_VOLUMEATTACHMENTS",
		providerset.GateClusterTopology:           "CLUSTER_TOPOLOGY",
		providerset.GateRuntimeSDK:                "EXP_RUNTIME_SDK",
		providerset.GateInPlaceUpdates:            "EXP_IN_PLACE_UPDATES",
		providerset.GateKubeadmBootstrapIgnition:  "EXP_KUBEADM_BOOTSTRAP_FORMAT_IGNITION",
		providerset.GateMachineTaintPropagation:   "EXP_MACHINE_TAINT_PROPAGATION",
	}
}

// gates returns the value of --feature-gates for the Deployment of a manager: each gate with its variable and its
// default. clusterctl replaces the variables during an installation, and withDefaults for manager.yaml.
func gates() string {
	known, err := providerset.NewGates()
	if err != nil { // the gates are constants of the program
		panic(err)
	}
	var out []string
	for _, gate := range slices.Sorted(maps.Keys(gateVariables())) {
		out = append(out, fmt.Sprintf("%s=${%s:=%t}", gate, gateVariables()[gate], known.Enabled(gate)))
	}
	return strings.Join(out, ",")
}

// withDefaults replaces the variables of a manifest with their defaults, so that it can be applied without clusterctl.
// writer.program calls it for manager.yaml (release.go).
func withDefaults(manifest []byte) []byte {
	return regexp.MustCompile(`\$\{[A-Z_]+:=([^}]*)\}`).ReplaceAll(manifest, []byte("$1"))
}

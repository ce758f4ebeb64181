package component

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/component-base/featuregate"

	"github.com/slipwayhq/slipway/internal/manager"
)

// gateVariables are the variables by which users of Cluster API switch feature gates in the components of its providers.
func gateVariables() map[featuregate.Feature]string {
	return map[featuregate.Feature]string{
		manager.GateMachinePool:               "EXP_MACHINE_POOL",
		manager.GateMachineSetPreflightChecks: "EXP_MACHINE_SET_PREFLIGHT_CHECKS",
		manager.GatePriorityQueue:             "EXP_PRIORITY_QUEUE",
		manager.GateReconcilerRateLimiting:    "EXP_RECONCILER_RATE_LIMITING",
		manager.GateVolumeAttachments:         "EXP_MACHINE_WAITFORVOLUMEDETACH_CONSIDER_VOLUMEATTACHMENTS",
		manager.GateClusterTopology:           "CLUSTER_TOPOLOGY",
		manager.GateRuntimeSDK:                "EXP_RUNTIME_SDK",
		manager.GateInPlaceUpdates:            "EXP_IN_PLACE_UPDATES",
		manager.GateKubeadmBootstrapIgnition:  "EXP_KUBEADM_BOOTSTRAP_FORMAT_IGNITION",
		manager.GateMachineTaintPropagation:   "EXP_MACHINE_TAINT_PROPAGATION",
	}
}

// gates is the value of --feature-gates: each with its variable, and the default of the program.
func gates() string {
	known, err := manager.NewGates()
	if err != nil { // the gates are constants of the program
		panic(err)
	}
	var out []string
	for _, gate := range slices.Sorted(maps.Keys(gateVariables())) {
		out = append(out, fmt.Sprintf("%s=${%s:=%t}", gate, gateVariables()[gate], known.Enabled(gate)))
	}
	return strings.Join(out, ",")
}

// WithDefaults is a manifest with the defaults in the place of its variables, for who applies it without clusterctl.
func WithDefaults(manifest []byte) []byte {
	return regexp.MustCompile(`\$\{[A-Z_]+:=([^}]*)\}`).ReplaceAll(manifest, []byte("$1"))
}

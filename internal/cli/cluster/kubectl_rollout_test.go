package cluster

import (
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/fault"
)

// What kubectl cannot do for the kinds of Cluster API is refused with the command that can.
func TestCheckRollout(t *testing.T) {
	for args, want := range map[string]string{
		"rollout restart md/x -n a":                                     `"slipway rollout restart machinedeployment/x"`,
		"rollout restart machinedeployment x":                           `"slipway rollout restart machinedeployment/x"`,
		"rollout pause machinedeployments.cluster.x-k8s.io/x":           `"slipway rollout pause machinedeployment/x"`,
		"-n team rollout restart md/x":                                  `"slipway rollout restart machinedeployment/x"`,
		"rollout status kcp":                                            `"slipway rollout status kubeadmcontrolplane/NAME"`,
		"rollout resume KubeadmControlPlane/x":                          `"slipway rollout resume kubeadmcontrolplane/x"`,
		"rollout restart deployment/md":                                 "",
		"rollout history md/x":                                          "",
		"get md x":                                                      "",
		"rollout restart":                                               "",
		"exec -it p -- rollout restart md/x":                            "",
		"rollout restart machinedeployments.v1beta2.cluster.x-k8s.io/x": `"slipway rollout restart machinedeployment/x"`,
	} {
		err := checkKubectlRollout(strings.Fields(args))
		if (err != nil) != (want != "") || err != nil && (!strings.Contains(err.Error(), want) || fault.KindOf(err) != fault.Invalid) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestTaintKeys(t *testing.T) { // MA-17
	on := Gates{MachineTaintPropagation: true}
	for key, tc := range map[string]struct {
		reason                string
		worker, control, gate bool // allowed on a worker, on a control plane, without the gate
	}{
		"example.org/a":                       {"a user's own", true, true, false},
		"a":                                   {"without a domain", true, true, false},
		"node.cluster.x-k8s.io/uninitialized": {"Cluster API's", false, false, false},
		"node.cluster.x-k8s.io/outdated-revision":        {"Cluster API's", false, false, false},
		"node.kubernetes.io/not-ready":                   {"Kubernetes'", false, false, false},
		"node.kubernetes.io/unschedulable":               {"Kubernetes'", false, false, false},
		"node.kubernetes.io/out-of-service":              {"set by people", true, true, false},
		"node.cloudprovider.kubernetes.io/uninitialized": {"cloud providers'", false, false, false},
		"node.cloudprovider.kubernetes.io/shutdown":      {"cloud providers'", false, false, false},
		"node-role.kubernetes.io/master":                 {"of old control planes", false, false, false},
		"node-role.kubernetes.io/control-plane":          {"of control planes", false, true, false},
		"node-role.kubernetes.io/gpu":                    {"a role that users define", true, true, false},
	} {
		machine := func(labels map[string]string) *clusterv1.Machine {
			m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
			m.Spec.Bootstrap.ConfigRef = ref("Config")
			m.Spec.Taints = []clusterv1.MachineTaint{{Key: key, Effect: "NoSchedule", Propagation: clusterv1.MachineTaintPropagationAlways}}
			return m
		}
		worker, control := machine(nil), machine(map[string]string{clusterv1.MachineControlPlaneLabel: ""})
		got := []bool{
			len(Validate(Request{New: worker, Gates: on}).Errors) == 0,
			len(Validate(Request{New: control, Gates: on}).Errors) == 0,
			len(Validate(Request{New: worker}).Errors) == 0,
		}
		if diff := cmp.Diff([]bool{tc.worker, tc.control, tc.gate}, got); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", key, tc.reason, diff)
		}
	}
}

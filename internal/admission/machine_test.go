package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestMachine(t *testing.T) {
	valid := func(change func(*clusterv1.Machine)) *clusterv1.Machine {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
		m.Spec = clusterv1.MachineSpec{ClusterName: "c", Version: "v1.36.3"}
		m.Spec.Bootstrap.ConfigRef = ref("KubeadmConfig")
		change(m)
		return m
	}
	taints := func(keys ...string) []clusterv1.MachineTaint {
		var list []clusterv1.MachineTaint
		for _, key := range keys {
			list = append(list, clusterv1.MachineTaint{Key: key, Effect: "NoSchedule", Propagation: "Always"})
		}
		return list
	}
	gate := Gates{MachineTaintPropagation: true}
	tests := map[string]struct {
		reason string
		req    Request
		want   []string
	}{
		"valid": {reason: "a plain machine", req: Request{New: valid(func(*clusterv1.Machine) {})}},
		"versions": { // MA-27
			reason: "a version needs its v and three numbers",
			req:    Request{New: valid(func(m *clusterv1.Machine) { m.Spec.Version = "v1.36" })},
			want:   []string{"spec.version"},
		},
		"prerelease": { // MA-27
			reason: "semantic versions have more than numbers",
			req:    Request{New: valid(func(m *clusterv1.Machine) { m.Spec.Version = "v1.37.0-alpha.1+build" })},
		},
		"moved to another cluster": { // MA-27
			reason: "the cluster of a machine is for life",
			req: Request{
				Old: valid(func(*clusterv1.Machine) {}),
				New: valid(func(m *clusterv1.Machine) { m.Spec.ClusterName = "other" }),
			},
			want: []string{"spec.clusterName"},
		},
		"no bootstrap": { // MA-27
			reason: "nothing tells how it becomes a node",
			req:    Request{New: valid(func(m *clusterv1.Machine) { m.Spec.Bootstrap = clusterv1.Bootstrap{} })},
			want:   []string{"spec.bootstrap"},
		},
		"credentials as bootstrap data": { // CX-08
			reason: "who creates a Machine need not read Secrets",
			req: Request{New: valid(func(m *clusterv1.Machine) {
				m.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: new("c-kubeconfig")}
			})},
			want: []string{"spec.bootstrap.dataSecretName"},
		},
		"credentials as bootstrap data, of a pool": { // CX-08
			reason: "the label of a pool is anyone's to set",
			req: Request{New: valid(func(m *clusterv1.Machine) {
				m.Labels = map[string]string{clusterv1.MachinePoolNameLabel: "p"}
				m.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: new("c-kubeconfig")}
			})},
			want: []string{"spec.bootstrap.dataSecretName"},
		},
		"bootstrap secret": { // MA-27
			reason: "data from a secret is as good",
			req: Request{New: valid(func(m *clusterv1.Machine) {
				m.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: new("s")}
			})},
		},
		"pool machine": { // MA-27, MP-07
			reason: "the pool bootstraps its machines",
			req: Request{New: valid(func(m *clusterv1.Machine) {
				m.Spec.Bootstrap = clusterv1.Bootstrap{}
				m.Labels = map[string]string{clusterv1.MachinePoolNameLabel: "p"}
			})},
		},
		"taint without gate": { // MA-17
			reason: "the gate is off",
			req:    Request{New: valid(func(m *clusterv1.Machine) { m.Spec.Taints = taints("a") })},
			want:   []string{"spec.taints"},
		},
		"taints": { // MA-17
			reason: "keys that others own are refused",
			req: Request{Gates: gate, New: valid(func(m *clusterv1.Machine) {
				m.Spec.Taints = taints("mine", "node.cluster.x-k8s.io/uninitialized", "node.kubernetes.io/out-of-service",
					"node.kubernetes.io/unreachable", "node.cloudprovider.kubernetes.io/uninitialized",
					"node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane",
					"node.cluster.x-k8s.io/outdated-revision")
			})},
			want: []string{"spec.taints[1].key", "spec.taints[3].key", "spec.taints[4].key", "spec.taints[5].key",
				"spec.taints[6].key", "spec.taints[7].key"},
		},
		"control plane taint": { // MA-17
			reason: "control plane machines may have theirs",
			req: Request{Gates: gate, New: valid(func(m *clusterv1.Machine) {
				m.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
				m.Spec.Taints = taints("node-role.kubernetes.io/control-plane")
			})},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, problems(Validate(tt.req))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

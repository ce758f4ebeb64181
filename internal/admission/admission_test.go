package admission

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// problems returns the paths of the errors.
func problems(v Response) []string {
	var paths []string
	for _, err := range v.Errors {
		paths = append(paths, err.Field)
	}
	return paths
}

func ref(kind string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{APIGroup: "example.org", Kind: kind, Name: "x"}
}

// MA-27, MP-15, CL-34: the other defaults; what has them is left alone, and the input always is.
func TestDefaults(t *testing.T) {
	labels := map[string]string{clusterv1.ClusterNameLabel: "c"}
	ten := clusterv1.MachineDeletionSpec{NodeDeletionTimeoutSeconds: new(int32(10))}
	tests := map[string]struct {
		in, want runtime.Object
	}{
		"machine": {
			in: &clusterv1.Machine{Spec: clusterv1.MachineSpec{ClusterName: "c", Version: "1.36.3"}},
			want: &clusterv1.Machine{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       clusterv1.MachineSpec{ClusterName: "c", Version: "v1.36.3", Deletion: ten},
			},
		},
		"machine with all": {
			in: &clusterv1.Machine{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: clusterv1.MachineSpec{ClusterName: "c", Deletion: clusterv1.MachineDeletionSpec{
					NodeDeletionTimeoutSeconds: new(int32(0)),
				}},
			},
		},
		"pool": {
			in: &clusterv1.MachinePool{Spec: clusterv1.MachinePoolSpec{ClusterName: "c"}},
			want: &clusterv1.MachinePool{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: clusterv1.MachinePoolSpec{
					ClusterName: "c", Replicas: new(int32(1)),
					Template: clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{
						MinReadySeconds: new(int32(0)), Deletion: ten,
					}},
				},
			},
		},
		"cluster": {
			in:   &clusterv1.Cluster{Spec: clusterv1.ClusterSpec{Topology: clusterv1.Topology{Version: "1.36.3"}}},
			want: &clusterv1.Cluster{Spec: clusterv1.ClusterSpec{Topology: clusterv1.Topology{Version: "v1.36.3"}}},
		},
		"plain cluster": {in: &clusterv1.Cluster{}},
		"other kind":    {in: &clusterv1.MachineDrainRule{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before := tt.in.DeepCopyObject()
			got, changed := Default(Request{New: tt.in})
			want := tt.want
			if want == nil {
				want = before
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if changed != (tt.want != nil) {
				t.Errorf("changed: got %t", changed)
			}
			if diff := cmp.Diff(before, tt.in); diff != "" {
				t.Errorf("the input was changed:\n%s", diff)
			}
		})
	}
}

// What is served without a controller is admitted, and warned of where it is created.
func TestUnsupportedKinds(t *testing.T) { // FG-01
	for name, tc := range map[string]struct {
		object runtime.Object
		want   string
	}{
		"KubeadmControlPlaneTemplate": {&controlplanev1.KubeadmControlPlaneTemplate{}, "nothing uses a KubeadmControlPlaneTemplate"},
		"ClusterClass":                {&clusterv1.ClusterClass{}, "nothing uses a ClusterClass"},
	} {
		v := Validate(Request{New: tc.object})
		if len(v.Errors) > 0 || len(v.Warnings) != 1 || !strings.HasSuffix(v.Warnings[0], tc.want) || len(v.Warnings[0]) > 256 {
			t.Errorf("%s: %+v", name, v)
		}
		if v := Validate(Request{New: tc.object, Old: tc.object}); len(v.Errors)+len(v.Warnings) > 0 {
			t.Errorf("%s is warned of once: %+v", name, v)
		}
	}
}

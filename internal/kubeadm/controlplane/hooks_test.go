package controlplane_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane"
)

// The hook is reached when the Machine controller says so, and is the last one from v1.31 on.
func TestHook(t *testing.T) { // KC-11, KC-35
	const own = controlplanev1.PreTerminateHookCleanupAnnotation
	type answer struct {
		Has, Reached, Last bool
		Others             []string
	}
	waiting := metav1.Condition{Type: clusterv1.DeletingCondition, Status: metav1.ConditionTrue, Reason: clusterv1.MachineDeletingWaitingForPreTerminateHookReason}
	draining := metav1.Condition{Type: clusterv1.DeletingCondition, Status: metav1.ConditionTrue, Reason: clusterv1.MachineDeletingDrainingNodeReason}
	other := clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/backup"
	first := clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/a"
	drain := clusterv1.PreDrainDeleteHookAnnotationPrefix + "/backup"
	for name, tc := range map[string]struct {
		version     string
		annotations map[string]string
		conditions  []metav1.Condition
		want        answer
	}{
		"none":                    {"v1.36.3", nil, []metav1.Condition{waiting}, answer{Last: true}},
		"not deleted":             {"v1.36.3", map[string]string{own: ""}, nil, answer{Has: true, Last: true}},
		"draining":                {"v1.36.3", map[string]string{own: ""}, []metav1.Condition{draining}, answer{Has: true, Last: true}},
		"reached":                 {"v1.36.3", map[string]string{own: ""}, []metav1.Condition{waiting}, answer{Has: true, Reached: true, Last: true}},
		"others, in order":        {"v1.31.0", map[string]string{own: "", other: "", first: "", drain: ""}, []metav1.Condition{waiting}, answer{Has: true, Reached: true, Last: true, Others: []string{first, other}}},
		"kubelet without the own": {"v1.30.9", map[string]string{own: "", other: ""}, []metav1.Condition{waiting}, answer{Has: true, Reached: true, Others: []string{other}}},
		"version that is none":    {"latest", map[string]string{own: ""}, nil, answer{Has: true, Last: true}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}
			m.Spec.Version, m.Status.Conditions = tc.version, tc.conditions
			got := answer{controlplane.HasHook(m), controlplane.IsReached(m), controlplane.IsLast(m), controlplane.OtherHooks(m)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

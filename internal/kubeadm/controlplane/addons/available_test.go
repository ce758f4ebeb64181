package addons

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAvailableCondition(t *testing.T) {
	dns := func(observed int64, available int32, status corev1.ConditionStatus) *appsv1.Deployment {
		replicas := int32(2)
		return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &replicas}, Status: appsv1.DeploymentStatus{
			ObservedGeneration: observed, AvailableReplicas: available,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: status}},
		}}
	}
	for name, tc := range map[string]struct {
		reason  string
		dns     *appsv1.Deployment
		isNew   bool
		status  metav1.ConditionStatus
		message string
		pending bool
	}{
		"none":           {"users may run another DNS server", nil, true, "", "", false},
		"simulated":      {"no controller reports on it", dns(0, 0, corev1.ConditionFalse), false, "", "", false},
		"not observed":   {"a controller will report on it", dns(0, 0, corev1.ConditionFalse), true, metav1.ConditionUnknown, "to observe Deployment coredns", true},
		"available":      {"one Pod is enough", dns(1, 1, corev1.ConditionTrue), true, metav1.ConditionTrue, "", false},
		"no Pod":         {"the number of Pods is named", dns(1, 0, corev1.ConditionFalse), false, metav1.ConditionFalse, "has 0 of 2 available Pods", true},
		"scaled to zero": {"Deployments without Pods report Available", dns(1, 0, corev1.ConditionTrue), true, metav1.ConditionFalse, "has 0 of 2", true},
	} {
		t.Run(name, func(t *testing.T) {
			f := KubeadmState{DNS: tc.dns}
			got := AvailableCondition(f, tc.isNew)
			if got.Status != tc.status || !strings.Contains(got.Message, tc.message) || IsPending(f, tc.isNew) != tc.pending {
				t.Errorf("%s: got %+v, pending %v", tc.reason, got, IsPending(f, tc.isNew))
			}
		})
	}
}

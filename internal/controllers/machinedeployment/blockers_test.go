package machinedeployment

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
)

func TestHindrancesAreSaid(t *testing.T) { // DP-12, DP-19, MS-12
	blocked := func(s *snapshot) {
		s.Deployment.Spec.Replicas = new(int32(5))
		c := metav1.Condition{Type: clusterv1.MachineSetScalingUpCondition, Status: "True", Reason: "ScalingUp",
			Message: "Scaling up from 3 to 5 replicas is blocked because:\n* version v1.37.0 is too new\n* and that\n* and that"}
		s.Sets[0].Status.Conditions, s.Sets[0].Status.ObservedGeneration = []metav1.Condition{c}, 1
	}
	outdated := func(s *snapshot) {
		turn(s, "md-1", 0, is(clusterv1.MachineUpToDateCondition, "False", "* Version v1.36.3, v1.36.4 required"))
	}
	const why = "\n* version v1.37.0 is too new\n* and that"
	for name, tc := range map[string]struct {
		reason string
		s      snapshot
		want   map[string]string
	}{
		"set is blocked": {
			reason: "the deployment passes on what its set says, once", s: settled(blocked),
			want: map[string]string{
				clusterv1.MachineDeploymentAvailableCondition: "3 available replicas, at least 5 required (spec.replicas is 5)" + why,
				clusterv1.MachineDeploymentScalingUpCondition: "Scaling up from 3 to 5 replicas" + why,
			},
		},
		"rollout is blocked": {
			reason: "all are available, and yet nothing goes on", s: settled(blocked, outdated),
			want: map[string]string{
				clusterv1.MachineDeploymentRollingOutCondition: "Rolling out 1 not up-to-date replicas\n* Version v1.36.3, v1.36.4 required" + why,
			},
		},
		"hand-over is blocked": {
			reason: "an old set says why it hands nothing over", s: settled(blocked, outdated, func(s *snapshot) {
				s.Sets[0].Annotations[moveTo] = "md-2"
				s.Sets[0].Status.Conditions[0].Type = clusterv1.MachineSetScalingDownCondition
			}),
			want: map[string]string{
				clusterv1.MachineDeploymentRollingOutCondition: "Rolling out 1 not up-to-date replicas\n* Version v1.36.3, v1.36.4 required" + why,
			},
		},
		"set is new": {
			reason: "what a set says before it was looked at is not worth a word", s: settled(blocked, func(s *snapshot) { s.Sets[0].Status.ObservedGeneration = 0 }),
			want: map[string]string{clusterv1.MachineDeploymentScalingUpCondition: "Scaling up from 3 to 5 replicas"},
		},
		"set scaled": {
			reason: "a set that is done says why it could not grow any more", s: settled(blocked, func(s *snapshot) {
				s.Sets[0].Status.Conditions[0].Status = "False"
			}),
			want: map[string]string{clusterv1.MachineDeploymentScalingUpCondition: "Scaling up from 3 to 5 replicas"},
		},
		"set grows": {
			reason: "nothing stands in its way", s: settled(blocked, func(s *snapshot) {
				s.Sets[0].Status.Conditions[0].Message = "Scaling up from 3 to 5 replicas"
			}),
			want: map[string]string{clusterv1.MachineDeploymentAvailableCondition: "3 available replicas, at least 5 required (spec.replicas is 5)"},
		},
		"no template": {
			reason: "Available is what describe shows", s: settled(blocked, func(s *snapshot) { s.Templates[0].Object.Unstructured = nil }),
			want: map[string]string{
				clusterv1.MachineDeploymentAvailableCondition: "3 available replicas, at least 5 required (spec.replicas is 5)\n* HostTemplate i does not exist",
			},
		},
	} {
		conditions := condition.Set(reported(tc.s).Conditions)
		for kind, want := range tc.want {
			if c := conditions.Get(kind); c == nil || c.Message != want {
				t.Errorf("%s: %s: %s says %+v, want %q", name, tc.reason, kind, c, want)
			}
		}
	}
}

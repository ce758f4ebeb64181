package admission

import (
	"slices"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/policy"
)

func TestDefaultReplicas(t *testing.T) { // MS-22, AS-01
	limits := func(lowest, highest string) map[string]string {
		a := map[string]string{}
		if lowest != "" {
			a[clusterv1.AutoscalerMinSizeAnnotation] = lowest
		}
		if highest != "" {
			a[clusterv1.AutoscalerMaxSizeAnnotation] = highest
		}
		return a
	}
	cases := map[string]struct {
		reason      string
		annotations map[string]string
		old         *int32
		want        int32
	}{
		"no autoscaler":         {reason: "one replica is the default", want: 1},
		"no autoscaler, old":    {reason: "a number that was taken away falls back to the default", old: new(int32(4)), want: 1},
		"new":                   {reason: "an autoscaler starts at its lower limit", annotations: limits("3", "5"), want: 3},
		"old within":            {reason: "the autoscaler takes over what is there", annotations: limits("3", "5"), old: new(int32(4)), want: 4},
		"old at a limit":        {reason: "limits are inclusive", annotations: limits("3", "5"), old: new(int32(5)), want: 5},
		"old below":             {reason: "raised to the lower limit", annotations: limits("3", "5"), old: new(int32(1)), want: 3},
		"old above":             {reason: "lowered to the upper limit", annotations: limits("3", "5"), old: new(int32(9)), want: 5},
		"only the lower limit":  {reason: "an autoscaler needs both", annotations: limits("3", ""), want: 1},
		"only the upper limit":  {reason: "an autoscaler needs both", annotations: limits("", "5"), old: new(int32(4)), want: 1},
		"limits are no numbers": {reason: "refused by validation; the default must not fail", annotations: limits("a few", "5"), want: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := defaultReplicas(tc.annotations, tc.old); got != tc.want {
				t.Errorf("got %d, want %d: %s", got, tc.want, tc.reason)
			}
		})
	}
}

// An operator's maximum holds for what is asked for again, through the object and through its scale subresource.
func TestMostReplicas(t *testing.T) {
	most := policy.Default()
	most.Maxima.Replicas = 10
	kinds := map[string]func(n int32) runtime.Object{
		"MachineDeployment": func(n int32) runtime.Object {
			return &clusterv1.MachineDeployment{Spec: clusterv1.MachineDeploymentSpec{Replicas: &n}}
		},
		"MachineSet": func(n int32) runtime.Object {
			return &clusterv1.MachineSet{Spec: clusterv1.MachineSetSpec{Replicas: &n}}
		},
		"MachinePool": func(n int32) runtime.Object {
			return &clusterv1.MachinePool{Spec: clusterv1.MachinePoolSpec{Replicas: &n}}
		},
		"scale": func(n int32) runtime.Object { return &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: n}} },
	}
	for name, tc := range map[string]struct {
		reason   string
		new, old int32 // old below 0: there is none
		policy   policy.Configuration
		refused  bool
	}{
		"as many":         {"the maximum itself is allowed", 10, -1, most, false},
		"one too many":    {"a new object", 11, -1, most, true},
		"scaled":          {"a larger one", 11, 10, most, true},
		"scaled further":  {"from before the maximum, and larger", 21, 20, most, true},
		"from before":     {"what is there may stay", 20, 20, most, false},
		"on the way down": {"and become less, one by one", 19, 20, most, false},
		"default":         {"1000", 1001, 1, policy.Default(), true},
		"within default":  {"1000", 1000, 1, policy.Default(), false},
		"no maximum":      {"0 is none", 100000, 1, policy.Configuration{}, false},
	} {
		for kind, object := range kinds {
			r := Request{New: object(tc.new), Policy: tc.policy}
			if tc.old >= 0 {
				r.Old = object(tc.old)
			}
			if got := slices.Contains(problems(Validate(r)), "spec.replicas"); got != tc.refused {
				t.Errorf("%s, %s: %s: %v", kind, name, tc.reason, Validate(r).Errors)
			}
		}
	}
}

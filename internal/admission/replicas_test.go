package admission

import (
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
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

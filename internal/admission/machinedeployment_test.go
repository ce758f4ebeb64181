package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func deployment(changes ...func(*clusterv1.MachineDeployment)) *clusterv1.MachineDeployment {
	d := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "md"}}
	d.Spec.ClusterName, d.Spec.Template.Spec.ClusterName = "c", "c"
	d.Spec.Template.Spec.Version = "1.36.3"
	d.Spec.Template.Spec.Bootstrap.ConfigRef = ref("KubeadmConfigTemplate")
	d.Spec.Template.Spec.InfrastructureRef = ref("LocalMachineTemplate")
	for _, change := range changes {
		change(d)
	}
	return d
}

// defaulted is a deployment with its defaults, changed afterwards.
func defaulted(changes ...func(*clusterv1.MachineDeployment)) *clusterv1.MachineDeployment {
	out, _ := Default(Request{New: deployment()})
	d := out.(*clusterv1.MachineDeployment)
	for _, change := range changes {
		change(d)
	}
	return d
}

func TestMachineDeploymentDefaults(t *testing.T) { // DP-17, AS-01, DP-06
	type change = func(*clusterv1.MachineDeployment)
	autoscaled := func(d *clusterv1.MachineDeployment) {
		d.Annotations = map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "3", clusterv1.AutoscalerMaxSizeAnnotation: "7"}
	}
	byName := map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineDeploymentNameLabel: "md"}
	for name, tc := range map[string]struct {
		reason string
		change change
		old    *clusterv1.MachineDeployment
		want   change
	}{
		"plain": {reason: "everything has a default", change: func(*clusterv1.MachineDeployment) {}, want: func(*clusterv1.MachineDeployment) {}},
		"autoscaled": {
			reason: "a new one begins with the autoscaler's least",
			change: autoscaled, want: func(d *clusterv1.MachineDeployment) { autoscaled(d); d.Spec.Replicas = new(int32(3)) },
		},
		"handed over": {
			reason: "one that was larger than the autoscaler allows comes down to that",
			change: autoscaled, old: deployment(func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = new(int32(9)) }),
			want: func(d *clusterv1.MachineDeployment) { autoscaled(d); d.Spec.Replicas = new(int32(7)) },
		},
		"selector": {
			reason: "a selector of the user's is only bound to the cluster",
			change: func(d *clusterv1.MachineDeployment) {
				d.Spec.Selector.MatchLabels, d.Spec.Template.Labels = map[string]string{"a": "1"}, map[string]string{"a": "1"}
			},
			want: func(d *clusterv1.MachineDeployment) {
				both := map[string]string{"a": "1", clusterv1.ClusterNameLabel: "c"}
				d.Spec.Selector.MatchLabels, d.Spec.Template.Labels = both, both
			},
		},
		"on delete": {
			reason: "that strategy has no numbers",
			change: func(d *clusterv1.MachineDeployment) {
				d.Spec.Rollout.Strategy.Type = clusterv1.OnDeleteMachineDeploymentStrategyType
			},
			want: func(d *clusterv1.MachineDeployment) {
				d.Spec.Rollout.Strategy = clusterv1.MachineDeploymentRolloutStrategy{Type: clusterv1.OnDeleteMachineDeploymentStrategyType}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := deployment(func(d *clusterv1.MachineDeployment) {
				d.Labels = map[string]string{clusterv1.ClusterNameLabel: "c"}
				d.Spec.Replicas = new(int32(1))
				d.Spec.Selector.MatchLabels, d.Spec.Template.Labels = byName, byName
				d.Spec.Rollout.Strategy = clusterv1.MachineDeploymentRolloutStrategy{
					Type: clusterv1.RollingUpdateMachineDeploymentStrategyType,
					RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{
						MaxSurge: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(0)),
					},
				}
				d.Spec.Template.Spec.Version = "v1.36.3"
				d.Spec.Template.Spec.Deletion.NodeDeletionTimeoutSeconds = new(int32(10))
			}, tc.want)
			req := Request{New: deployment(tc.change)}
			if tc.old != nil {
				req.Old = tc.old
			}
			got, changed := Default(req)
			if diff := cmp.Diff(want, got); diff != "" || !changed {
				t.Errorf("%s, changed %t (-want +got):\n%s", tc.reason, changed, diff)
			}
			if again, changed := Default(Request{New: got}); changed {
				t.Errorf("defaults change what has them: %s", cmp.Diff(got, again))
			}
			if v := Validate(Request{New: got}); len(v.Errors) > 0 {
				t.Errorf("what has defaults is refused: %v", v.Errors)
			}
		})
	}
}

func TestMachineDeploymentRules(t *testing.T) { // DP-17, DP-06
	amount := func(v string) *intstr.IntOrString { return new(intstr.Parse(v)) }
	for name, tc := range map[string]struct {
		reason string
		change func(*clusterv1.MachineDeployment)
		old    *clusterv1.MachineDeployment
		want   []string
	}{
		"valid": {reason: "the defaults", change: func(*clusterv1.MachineDeployment) {}},
		"percent": {reason: "percents", change: func(d *clusterv1.MachineDeployment) {
			d.Spec.Rollout.Strategy.RollingUpdate.MaxSurge, d.Spec.Remediation.MaxInFlight = amount("25%"), amount("10%")
		}},
		"moved": {
			reason: "a deployment stays with its cluster", old: defaulted(func(d *clusterv1.MachineDeployment) { d.Spec.ClusterName = "other" }),
			change: func(*clusterv1.MachineDeployment) {}, want: []string{"spec.clusterName"},
		},
		"other cluster": {
			reason: "its Machines are of the same cluster", change: func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.ClusterName = "other" },
			want: []string{"spec.template.spec.clusterName"},
		},
		"name": {
			reason: "a name that cannot stand in a label", change: func(d *clusterv1.MachineDeployment) { d.Name = "-a" },
			want: []string{"metadata.name"},
		},
		"negative": {reason: "replicas", change: func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = new(int32(-1)) }, want: []string{"spec.replicas"}},
		"autoscaler": {
			reason: "limits are numbers",
			change: func(d *clusterv1.MachineDeployment) {
				d.Annotations = map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "few"}
			},
			want: []string{"metadata.annotations[" + clusterv1.AutoscalerMinSizeAnnotation + "]"},
		},
		"selector": {
			reason: "the selector has to match the labels of the template",
			change: func(d *clusterv1.MachineDeployment) { d.Spec.Selector.MatchLabels["a"] = "1" },
			want:   []string{"spec.template.metadata.labels"},
		},
		"no selector": {
			reason: "a selector that cannot be read",
			change: func(d *clusterv1.MachineDeployment) {
				d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}
			},
			want: []string{"spec.selector"},
		},
		"no way": {
			reason: "neither more nor less: nothing could be replaced",
			change: func(d *clusterv1.MachineDeployment) {
				d.Spec.Rollout.Strategy.RollingUpdate.MaxSurge, d.Spec.Rollout.Strategy.RollingUpdate.MaxUnavailable = amount("0"), amount("0%")
			},
			want: []string{"spec.rollout.strategy.rollingUpdate.maxUnavailable"},
		},
		"amounts": {
			reason: "numbers or percents",
			change: func(d *clusterv1.MachineDeployment) {
				d.Spec.Rollout.Strategy.RollingUpdate.MaxSurge, d.Spec.Rollout.Strategy.RollingUpdate.MaxUnavailable = amount("-1"), amount("half")
				d.Spec.Remediation.MaxInFlight = amount("many")
			},
			want: []string{"spec.rollout.strategy.rollingUpdate.maxSurge", "spec.rollout.strategy.rollingUpdate.maxUnavailable", "spec.remediation.maxInFlight"},
		},
		"naming": {
			reason: "names have to differ", change: func(d *clusterv1.MachineDeployment) { d.Spec.MachineNaming.Template = "{{ .machineSet.name }}" },
			want: []string{"spec.machineNaming.template"},
		},
		"odd names": {
			reason: "and be names", change: func(d *clusterv1.MachineDeployment) { d.Spec.MachineNaming.Template = "A{{ .random }}" },
			want: []string{"spec.machineNaming.template"},
		},
		"machine": {
			reason: "what Machines are checked for",
			change: func(d *clusterv1.MachineDeployment) {
				d.Spec.Template.Labels["a/b/c"] = "x"
				d.Spec.Template.Spec.Bootstrap, d.Spec.Template.Spec.Version = clusterv1.Bootstrap{}, "latest"
				d.Spec.Template.Spec.Taints = []clusterv1.MachineTaint{{Key: "a"}}
			},
			want: []string{"spec.template.metadata.labels", "spec.template.spec.bootstrap", "spec.template.spec.version", "spec.template.spec.taints"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			req := Request{New: defaulted(tc.change)}
			if tc.old != nil {
				req.Old = tc.old
			}
			if diff := cmp.Diff(tc.want, problems(Validate(req))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	odd := defaulted(func(d *clusterv1.MachineDeployment) {
		d.Spec.Rollout.Strategy.Type = clusterv1.OnDeleteMachineDeploymentStrategyType
	})
	if v := Validate(Request{New: odd}); len(v.Errors) > 0 || len(v.Warnings) != 1 {
		t.Errorf("numbers that nobody looks at are warned of: %v %v", v.Errors, v.Warnings)
	}
}

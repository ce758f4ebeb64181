package admission

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func machineSet(changes ...func(*clusterv1.MachineSet)) *clusterv1.MachineSet {
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "ms"}}
	set.Spec.ClusterName = "c"
	set.Spec.Selector.MatchLabels = map[string]string{"a": "1"}
	set.Spec.Template.Labels = map[string]string{"a": "1", "b": "2"}
	set.Spec.Template.Spec = clusterv1.MachineSpec{ClusterName: "c", Version: "v1.36.3"}
	set.Spec.Template.Spec.Bootstrap.ConfigRef = ref("KubeadmConfigTemplate")
	for _, change := range changes {
		change(set)
	}
	return set
}

func TestMachineSet(t *testing.T) { // MS-23
	annotated := func(key, value string) func(*clusterv1.MachineSet) {
		return func(s *clusterv1.MachineSet) { s.Annotations = map[string]string{key: value} }
	}
	named := func(template string) func(*clusterv1.MachineSet) {
		return func(s *clusterv1.MachineSet) { s.Spec.MachineNaming.Template = template }
	}
	tests := map[string]struct {
		reason string
		req    Request
		want   []string
	}{
		"valid": {reason: "a plain MachineSet", req: Request{New: machineSet()}},
		"selector of nothing": {reason: "it would own every Machine",
			req:  Request{New: machineSet(func(s *clusterv1.MachineSet) { s.Spec.Selector = metav1.LabelSelector{} })},
			want: []string{"spec.selector"}},
		"selector of others": {reason: "it would make Machines without end",
			req:  Request{New: machineSet(func(s *clusterv1.MachineSet) { s.Spec.Template.Labels["a"] = "2" })},
			want: []string{"spec.template.metadata.labels"}},
		"selector that is none": {reason: "an operator that does not exist",
			req: Request{New: machineSet(func(s *clusterv1.MachineSet) {
				s.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}
			})}, want: []string{"spec.selector"}},
		"other cluster": {reason: "the Machines are of the set's Cluster",
			req:  Request{New: machineSet(func(s *clusterv1.MachineSet) { s.Spec.Template.Spec.ClusterName = "d" })},
			want: []string{"spec.template.spec.clusterName"}},
		"moved": {reason: "a MachineSet stays with its Cluster", req: Request{
			Old: machineSet(), New: machineSet(func(s *clusterv1.MachineSet) { s.Spec.ClusterName, s.Spec.Template.Spec.ClusterName = "d", "d" })},
			want: []string{"spec.clusterName"}},
		"version": {reason: "versions are semantic",
			req:  Request{New: machineSet(func(s *clusterv1.MachineSet) { s.Spec.Template.Spec.Version = "v1" })},
			want: []string{"spec.template.spec.version"}},
		"no bootstrap": {reason: "every Machine would be refused",
			req:  Request{New: machineSet(func(s *clusterv1.MachineSet) { s.Spec.Template.Spec.Bootstrap = clusterv1.Bootstrap{} })},
			want: []string{"spec.template.spec.bootstrap"}},
		"bad labels": {reason: "every Machine would be refused",
			req:  Request{New: machineSet(func(s *clusterv1.MachineSet) { s.Spec.Template.Labels["b"] = "a b" })},
			want: []string{"spec.template.metadata.labels"}},
		"names":                {reason: "a name template", req: Request{New: machineSet(named("{{ .cluster.name }}-{{ .random }}"))}},
		"names without random": {reason: "MS-06: the second Machine could not be made", req: Request{New: machineSet(named("{{ .cluster.name }}"))}, want: []string{"spec.machineNaming.template"}},
		"names of nothing":     {reason: "a variable that there is not", req: Request{New: machineSet(named("{{ .pool.name }}-{{ .random }}"))}, want: []string{"spec.machineNaming.template"}},
		"names that are none":  {reason: "capitals are not allowed in names", req: Request{New: machineSet(named("A_{{ .random }}"))}, want: []string{"spec.machineNaming.template"}},
		"skipped checks":       {reason: "spaces do not matter", req: Request{New: machineSet(annotated(clusterv1.MachineSetSkipPreflightChecksAnnotation, "KubeadmVersionSkew, All"))}},
		"unknown check": {reason: "a typo would skip nothing",
			req:  Request{New: machineSet(annotated(clusterv1.MachineSetSkipPreflightChecksAnnotation, "KubeadmVersion,All"))},
			want: []string{"metadata.annotations[machineset.cluster.x-k8s.io/skip-preflight-checks]"}},
		"autoscaler": {reason: "AS-01: limits are numbers",
			req:  Request{New: machineSet(annotated(clusterv1.AutoscalerMinSizeAnnotation, "few"))},
			want: []string{"metadata.annotations[" + clusterv1.AutoscalerMinSizeAnnotation + "]"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, problems(Validate(tt.req))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestMachineSetDefaults(t *testing.T) { // MS-22, AS-01
	bare := machineSet(func(s *clusterv1.MachineSet) {
		s.Spec.Selector, s.Spec.Template.Labels, s.Spec.Template.Spec.Version = metav1.LabelSelector{}, nil, "1.36.3"
		s.Name = strings.Repeat("x", 70)
		s.Annotations = map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "2", clusterv1.AutoscalerMaxSizeAnnotation: "4"}
	})
	out, changed := Default(Request{New: bare})
	set := out.(*clusterv1.MachineSet)
	label := set.Spec.Selector.MatchLabels[clusterv1.MachineSetNameLabel]
	if !changed || *set.Spec.Replicas != 2 || set.Spec.Deletion.Order != clusterv1.RandomMachineSetDeletionOrder ||
		set.Labels[clusterv1.ClusterNameLabel] != "c" || set.Spec.Template.Spec.Version != "v1.36.3" ||
		*set.Spec.Template.Spec.Deletion.NodeDeletionTimeoutSeconds != 10 ||
		len(label) > 63 || label == "" || set.Spec.Template.Labels[clusterv1.MachineSetNameLabel] != label {
		t.Errorf("got %+v", set)
	}
	if problems := problems(Validate(Request{New: set})); len(problems) > 0 {
		t.Errorf("defaults that are refused: %v", problems)
	}
	if _, changed := Default(Request{New: set}); changed {
		t.Error("defaults of defaults")
	}
	unset := set.DeepCopy()
	unset.Spec.Replicas = nil
	before := set.DeepCopy()
	before.Spec.Replicas = new(int32(9))
	out, _ = Default(Request{New: unset, Old: before})
	if got := *out.(*clusterv1.MachineSet).Spec.Replicas; got != 4 {
		t.Errorf("an autoscaler takes over 9 replicas within its limits: %d", got)
	}
}

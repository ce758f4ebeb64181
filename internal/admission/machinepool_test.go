package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestMachinePool(t *testing.T) {
	valid := func(change func(*clusterv1.MachinePool)) *clusterv1.MachinePool {
		p := &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
		p.Spec.ClusterName, p.Spec.Template.Spec.ClusterName = "c", "c"
		p.Spec.Template.Spec.Bootstrap.ConfigRef = ref("KubeadmConfig")
		change(p)
		return p
	}
	elsewhere := func(p *clusterv1.MachinePool) { p.Spec.Template.Spec.ClusterName = "other" }
	tests := map[string]struct {
		reason string
		req    Request
		want   []string
	}{
		"valid": {reason: "a plain pool", req: Request{New: valid(func(*clusterv1.MachinePool) {})}},
		"machines of another cluster": { // MP-15
			reason: "its machines join its cluster", req: Request{New: valid(elsewhere)}, want: []string{"spec.template.spec.clusterName"},
		},
		"machines of another cluster, stored": { // MP-15
			reason: "what was stored once can be changed otherwise, and deleted", req: Request{Old: valid(elsewhere), New: valid(elsewhere)},
		},
		"autoscaler, stored": { // MP-15
			reason: "what was stored once can be changed otherwise, and deleted",
			req: Request{Old: valid(func(p *clusterv1.MachinePool) {
				p.Annotations = map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "few"}
			}), New: valid(func(p *clusterv1.MachinePool) {
				p.Annotations = map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "few"}
			})},
		},
		"version": { // MP-15
			reason: "the version of the machines",
			req:    Request{New: valid(func(p *clusterv1.MachinePool) { p.Spec.Template.Spec.Version = "latest" })},
			want:   []string{"spec.template.spec.version"},
		},
		"moved to another cluster": { // MP-15
			reason: "the cluster of a pool is for life",
			req: Request{
				Old: valid(func(*clusterv1.MachinePool) {}),
				New: valid(func(p *clusterv1.MachinePool) { p.Spec.ClusterName = "other" }),
			},
			want: []string{"spec.clusterName"},
		},
		"no bootstrap": { // MP-15
			reason: "nothing tells how a machine becomes a node",
			req: Request{New: valid(func(p *clusterv1.MachinePool) {
				p.Spec.Template.Spec.Bootstrap = clusterv1.Bootstrap{}
			})},
			want: []string{"spec.template.spec.bootstrap"},
		},
		"autoscaler": { // MP-15
			reason: "the default of replicas needs a number",
			req: Request{New: valid(func(p *clusterv1.MachinePool) {
				p.Annotations = map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "few"}
			})},
			want: []string{"metadata.annotations[cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size]"},
		},
		"label": {
			reason: "labels for Machines must be valid",
			req: Request{New: valid(func(p *clusterv1.MachinePool) {
				p.Spec.Template.Labels = map[string]string{"a": "not valid"}
			})},
			want: []string{"spec.template.metadata.labels"},
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

// MP-15: how many replicas a pool has by default.
func TestMachinePoolReplicas(t *testing.T) {
	limits := map[string]string{
		clusterv1.AutoscalerMinSizeAnnotation: "3", clusterv1.AutoscalerMaxSizeAnnotation: "5",
	}
	pool := func(replicas *int32, annotations map[string]string) *clusterv1.MachinePool {
		p := &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
		p.Spec.Replicas = replicas
		return p
	}
	tests := map[string]struct {
		reason   string
		new, old *clusterv1.MachinePool
		want     int32
	}{
		"set":              {"what the user says", pool(new(int32(0)), limits), nil, 0},
		"not set":          {"one", pool(nil, nil), nil, 1},
		"removed":          {"one, without an autoscaler", pool(nil, nil), pool(new(int32(4)), nil), 1},
		"autoscaler, new":  {"the lowest", pool(nil, limits), nil, 3},
		"autoscaler below": {"raised to the lowest", pool(nil, limits), pool(new(int32(1)), nil), 3},
		"autoscaler above": {"lowered to the highest", pool(nil, limits), pool(new(int32(9)), nil), 5},
		"autoscaler":       {"what there is", pool(nil, limits), pool(new(int32(4)), nil), 4},
		"one limit": {"both are needed", pool(nil, map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "3"}),
			nil, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			req := Request{New: tt.new}
			if tt.old != nil {
				req.Old = tt.old
			}
			got, _ := Default(req)
			if replicas := *got.(*clusterv1.MachinePool).Spec.Replicas; replicas != tt.want {
				t.Errorf("%s: got %d, want %d", tt.reason, replicas, tt.want)
			}
		})
	}
}

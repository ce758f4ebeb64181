package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestCluster(t *testing.T) {
	valid := func(change func(*clusterv1.Cluster)) *clusterv1.Cluster {
		c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
		c.Spec.InfrastructureRef = ref("LocalCluster")
		change(c)
		return c
	}
	topology := clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "k"}, Version: "v1.36.3"}
	whole := func(change func(*clusterv1.Cluster)) *clusterv1.Cluster {
		return valid(func(c *clusterv1.Cluster) {
			c.Spec.ControlPlaneRef = ref("HostedControlPlane")
			change(c)
		})
	}
	tests := map[string]struct {
		reason string
		req    Request
		want   []string
	}{
		"infrastructureRef removed": { // CL-31
			reason: "the deletion of the Cluster would leave the infrastructure behind",
			req: Request{Old: whole(func(*clusterv1.Cluster) {}), New: whole(func(c *clusterv1.Cluster) {
				c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{}
			})},
			want: []string{"spec.infrastructureRef"},
		},
		"controlPlaneRef removed": { // CL-31
			reason: "nothing would delete the control plane any more",
			req: Request{Old: whole(func(*clusterv1.Cluster) {}), New: whole(func(c *clusterv1.Cluster) {
				c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{}
			})},
			want: []string{"spec.controlPlaneRef"},
		},
		"the only reference removed": { // CL-31
			reason: "both rules are told",
			req: Request{Old: valid(func(*clusterv1.Cluster) {}), New: valid(func(c *clusterv1.Cluster) {
				c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{}
			})},
			want: []string{"spec", "spec.infrastructureRef"},
		},
		"references changed and added": { // CL-31
			reason: "a reference may be set later and point to another object: restores and adoptions need it",
			req: Request{Old: valid(func(*clusterv1.Cluster) {}), New: whole(func(c *clusterv1.Cluster) {
				c.Spec.InfrastructureRef.Name = "y"
			})},
		},
		"references changed with a topology": { // CL-31, CL-33
			reason: "what the topology has made would be lost to the Cluster",
			req: Request{Gates: Gates{ClusterTopology: true},
				New: whole(func(c *clusterv1.Cluster) {
					c.Spec.Topology = topology
					c.Spec.ControlPlaneRef.Kind, c.Spec.InfrastructureRef.Name = "KubeadmControlPlane", "other"
				}),
				Old: whole(func(c *clusterv1.Cluster) { c.Spec.Topology = topology })},
			want: []string{"spec.infrastructureRef", "spec.controlPlaneRef", "spec.topology.classRef"}, // the class does not exist
		},
		"topology added with other references": { // CL-31
			reason: "they are not the topology's yet",
			req: Request{Gates: Gates{ClusterTopology: true},
				New: whole(func(c *clusterv1.Cluster) { c.Spec.Topology, c.Spec.InfrastructureRef.Name = topology, "other" }),
				Old: whole(func(*clusterv1.Cluster) {})},
			want: []string{"spec.topology.classRef", "spec.topology.classRef"},
		},
		"topology removed": { // CL-31, CL-33
			reason: "a managed Cluster stays one",
			req: Request{Gates: Gates{ClusterTopology: true}, New: whole(func(*clusterv1.Cluster) {}),
				Old: whole(func(c *clusterv1.Cluster) { c.Spec.Topology = topology })},
			want: []string{"spec.topology"},
		},
		"topology removed without gate": { // CL-31
			reason: "the gate is off: without one a Cluster from elsewhere can be used",
			req:    Request{New: whole(func(*clusterv1.Cluster) {}), Old: whole(func(c *clusterv1.Cluster) { c.Spec.Topology = topology })},
		},
		"valid": {
			reason: "a plain cluster",
			req:    Request{New: valid(func(*clusterv1.Cluster) {})},
		},
		"dotted name": { // CL-30
			reason: "dots are allowed in label values and in names",
			req:    Request{New: valid(func(c *clusterv1.Cluster) { c.Name = "a.b" })},
		},
		"long name": { // CL-30
			reason: "64 characters do not fit into a label",
			req: Request{New: valid(func(c *clusterv1.Cluster) {
				c.Name = "a123456789a123456789a123456789a123456789a123456789a123456789abcd"
			})},
			want: []string{"metadata.name"},
		},
		"nothing": { // CL-31
			reason: "a cluster of nothing",
			req:    Request{New: valid(func(c *clusterv1.Cluster) { c.Spec = clusterv1.ClusterSpec{Paused: new(true)} })},
			want:   []string{"spec"},
		},
		"control plane alone": { // CL-31
			reason: "one of the three is enough",
			req: Request{New: valid(func(c *clusterv1.Cluster) {
				c.Spec = clusterv1.ClusterSpec{ControlPlaneRef: ref("HostedControlPlane")}
			})},
		},
		"ranges": { // CL-31
			reason: "ranges of both families are valid, others are told by their place",
			req: Request{New: valid(func(c *clusterv1.Cluster) {
				c.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"172.31.128.0/17", "fd00::/64"}
				c.Spec.ClusterNetwork.Services.CIDRBlocks = []string{"172.31.1.0/24", "172.31.1.0"}
			})},
			want: []string{"spec.clusterNetwork.services.cidrBlocks[1]"},
		},
		"topology without gate": { // CL-32
			reason: "the gate is off",
			req: Request{New: valid(func(c *clusterv1.Cluster) {
				c.Spec.Topology = clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "k"}, Version: "v1.36.3"}
			})},
			want: []string{"spec.topology"},
		},
		"topology with gate": { // CL-32
			reason: "the gate is on; the version is still checked",
			req: Request{Gates: Gates{ClusterTopology: true}, New: valid(func(c *clusterv1.Cluster) {
				c.Spec.Topology = clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "k"}, Version: "vnext"}
			})},
			want: []string{"spec.topology.version"},
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

// Pods and Services with the same addresses are admitted, as by the reference, and not without a word.
func TestOverlapOfRanges(t *testing.T) {
	cluster := func(pods, services string) *clusterv1.Cluster {
		c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
		c.Spec.InfrastructureRef = ref("LocalCluster")
		c.Spec.ClusterNetwork.Pods.CIDRBlocks, c.Spec.ClusterNetwork.Services.CIDRBlocks = []string{pods}, []string{services}
		return c
	}
	const a, inA, b = "10.0.0.0/16", "10.0.4.0/24", "10.1.0.0/16"
	for name, c := range map[string]struct {
		r    Request
		warn bool
	}{
		"apart":        {Request{New: cluster(a, b)}, false},
		"the same":     {Request{New: cluster(a, a)}, true},
		"within":       {Request{New: cluster(inA, a)}, true},
		"changed":      {Request{Old: cluster(a, b), New: cluster(a, inA)}, true},
		"as it was":    {Request{Old: cluster(a, a), New: cluster(a, a)}, false},
		"not readable": {Request{New: cluster("x", a)}, false},
	} {
		if v := validateCluster(c.r, c.r.New.(*clusterv1.Cluster)); (len(v.Warnings) > 0) != c.warn {
			t.Errorf("%s: warnings %v", name, v.Warnings)
		}
	}
}

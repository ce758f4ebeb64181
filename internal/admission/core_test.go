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

func TestMachine(t *testing.T) {
	valid := func(change func(*clusterv1.Machine)) *clusterv1.Machine {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
		m.Spec = clusterv1.MachineSpec{ClusterName: "c", Version: "v1.36.3"}
		m.Spec.Bootstrap.ConfigRef = ref("KubeadmConfig")
		change(m)
		return m
	}
	taints := func(keys ...string) []clusterv1.MachineTaint {
		var list []clusterv1.MachineTaint
		for _, key := range keys {
			list = append(list, clusterv1.MachineTaint{Key: key, Effect: "NoSchedule", Propagation: "Always"})
		}
		return list
	}
	gate := Gates{MachineTaintPropagation: true}
	tests := map[string]struct {
		reason string
		req    Request
		want   []string
	}{
		"valid": {reason: "a plain machine", req: Request{New: valid(func(*clusterv1.Machine) {})}},
		"versions": { // MA-27
			reason: "a version needs its v and three numbers",
			req:    Request{New: valid(func(m *clusterv1.Machine) { m.Spec.Version = "v1.36" })},
			want:   []string{"spec.version"},
		},
		"prerelease": { // MA-27
			reason: "semantic versions have more than numbers",
			req:    Request{New: valid(func(m *clusterv1.Machine) { m.Spec.Version = "v1.37.0-alpha.1+build" })},
		},
		"moved to another cluster": { // MA-27
			reason: "the cluster of a machine is for life",
			req: Request{
				Old: valid(func(*clusterv1.Machine) {}),
				New: valid(func(m *clusterv1.Machine) { m.Spec.ClusterName = "other" }),
			},
			want: []string{"spec.clusterName"},
		},
		"no bootstrap": { // MA-27
			reason: "nothing tells how it becomes a node",
			req:    Request{New: valid(func(m *clusterv1.Machine) { m.Spec.Bootstrap = clusterv1.Bootstrap{} })},
			want:   []string{"spec.bootstrap"},
		},
		"credentials as bootstrap data": { // CX-08
			reason: "who creates a Machine need not read Secrets",
			req: Request{New: valid(func(m *clusterv1.Machine) {
				m.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: new("c-kubeconfig")}
			})},
			want: []string{"spec.bootstrap.dataSecretName"},
		},
		"credentials as bootstrap data, of a pool": { // CX-08
			reason: "the label of a pool is anyone's to set",
			req: Request{New: valid(func(m *clusterv1.Machine) {
				m.Labels = map[string]string{clusterv1.MachinePoolNameLabel: "p"}
				m.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: new("c-kubeconfig")}
			})},
			want: []string{"spec.bootstrap.dataSecretName"},
		},
		"bootstrap secret": { // MA-27
			reason: "data from a secret is as good",
			req: Request{New: valid(func(m *clusterv1.Machine) {
				m.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: new("s")}
			})},
		},
		"pool machine": { // MA-27, MP-07
			reason: "the pool bootstraps its machines",
			req: Request{New: valid(func(m *clusterv1.Machine) {
				m.Spec.Bootstrap = clusterv1.Bootstrap{}
				m.Labels = map[string]string{clusterv1.MachinePoolNameLabel: "p"}
			})},
		},
		"taint without gate": { // MA-17
			reason: "the gate is off",
			req:    Request{New: valid(func(m *clusterv1.Machine) { m.Spec.Taints = taints("a") })},
			want:   []string{"spec.taints"},
		},
		"taints": { // MA-17
			reason: "keys that others own are refused",
			req: Request{Gates: gate, New: valid(func(m *clusterv1.Machine) {
				m.Spec.Taints = taints("mine", "node.cluster.x-k8s.io/uninitialized", "node.kubernetes.io/out-of-service",
					"node.kubernetes.io/unreachable", "node.cloudprovider.kubernetes.io/uninitialized",
					"node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane",
					"node.cluster.x-k8s.io/outdated-revision")
			})},
			want: []string{"spec.taints[1].key", "spec.taints[3].key", "spec.taints[4].key", "spec.taints[5].key",
				"spec.taints[6].key", "spec.taints[7].key"},
		},
		"control plane taint": { // MA-17
			reason: "control plane machines may have theirs",
			req: Request{Gates: gate, New: valid(func(m *clusterv1.Machine) {
				m.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
				m.Spec.Taints = taints("node-role.kubernetes.io/control-plane")
			})},
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
		"KubeadmControlPlaneTemplate": {&controlplanev1.KubeadmControlPlaneTemplate{}, "nothing here uses a KubeadmControlPlaneTemplate"},
		"ClusterClass":                {&clusterv1.ClusterClass{}, "nothing here uses a ClusterClass"},
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

package conversion_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/conversion"
)

// machinePool is a hub with fields that v1beta1 has, has elsewhere, and has not.
func machinePool() *clusterv1.MachinePool {
	return &clusterv1.MachinePool{
		ObjectMeta: metav1.ObjectMeta{Name: "pool", Namespace: "ns"},
		Spec: clusterv1.MachinePoolSpec{
			ClusterName: "c",
			Replicas:    new(int32(2)),
			Template: clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{
				ClusterName:     "c",
				MinReadySeconds: new(int32(7)),
				Deletion:        clusterv1.MachineDeletionSpec{NodeDrainTimeoutSeconds: new(int32(60))},
				Taints:          []clusterv1.MachineTaint{{Key: "a", Effect: "NoSchedule", Propagation: "Always"}},
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{
					APIGroup: "infrastructure.slipway.dev", Kind: "LocalMachinePool", Name: "pool",
				},
			}},
		},
		Status: clusterv1.MachinePoolStatus{
			Initialization: clusterv1.MachinePoolInitializationStatus{InfrastructureProvisioned: new(false)},
		},
	}
}

// CV-01: what a user changes in an older version arrives; what the older version cannot say stays.
func TestChangeInSpoke(t *testing.T) {
	tests := map[string]struct {
		reason string
		change func(*clusterv1beta1.MachinePool)
		want   func(*clusterv1.MachinePool)
	}{
		"nothing": {
			reason: "an unchanged object comes back as it was, false included",
			change: func(*clusterv1beta1.MachinePool) {},
			want:   func(*clusterv1.MachinePool) {},
		},
		"replicas": {
			reason: "a plain field",
			change: func(p *clusterv1beta1.MachinePool) { p.Spec.Replicas = new(int32(5)) },
			want:   func(p *clusterv1.MachinePool) { p.Spec.Replicas = new(int32(5)) },
		},
		"timeout removed": {
			reason: "a field with another name and unit; removing counts as a change",
			change: func(p *clusterv1beta1.MachinePool) { p.Spec.Template.Spec.NodeDrainTimeout = nil },
			want: func(p *clusterv1.MachinePool) {
				p.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds = nil
			},
		},
		"minReadySeconds": {
			reason: "a field that moved",
			change: func(p *clusterv1beta1.MachinePool) { p.Spec.MinReadySeconds = new(int32(9)) },
			want:   func(p *clusterv1.MachinePool) { p.Spec.Template.Spec.MinReadySeconds = new(int32(9)) },
		},
		"provisioned": {
			reason: "a flag that v1beta1 has in another form",
			change: func(p *clusterv1beta1.MachinePool) { p.Status.InfrastructureReady = true },
			want: func(p *clusterv1.MachinePool) {
				p.Status.Initialization.InfrastructureProvisioned = new(true)
			},
		},
		"reference": {
			reason: "a reference, its version left out",
			change: func(p *clusterv1beta1.MachinePool) {
				p.Spec.Template.Spec.InfrastructureRef = corev1.ObjectReference{
					APIVersion: "other.example/v1beta1", Kind: "Other", Name: "o", Namespace: "ns",
				}
			},
			want: func(p *clusterv1.MachinePool) {
				p.Spec.Template.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
					APIGroup: "other.example", Kind: "Other", Name: "o",
				}
			},
		},
		"label": {
			reason: "metadata is the user's alone",
			change: func(p *clusterv1beta1.MachinePool) { p.Labels = map[string]string{"x": "y"} },
			want:   func(p *clusterv1.MachinePool) { p.Labels = map[string]string{"x": "y"} },
		},
	}
	c := newConverter(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			object, err := c.Convert(machinePool(), "v1beta1")
			if err != nil {
				t.Fatal(err)
			}
			spoke := object.(*clusterv1beta1.MachinePool)
			tt.change(spoke)
			got, err := c.Convert(spoke, conversion.HubVersion)
			if err != nil {
				t.Fatal(err)
			}
			want := machinePool()
			want.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachinePool"))
			tt.want(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

// CV-01: the annotation is there when it is needed, and only then, and never in the hub.
func TestDataAnnotation(t *testing.T) {
	c := newConverter(t)
	plain := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: "ns"},
		Spec:       clusterv1.MachineSpec{ClusterName: "c", Version: "v1.36.3"},
	}
	full := plain.DeepCopy()
	full.Spec.MinReadySeconds = new(int32(3))
	for name, tt := range map[string]struct {
		hub  *clusterv1.Machine
		want bool
	}{"v1beta1 can say everything": {plain, false}, "v1beta1 has no minReadySeconds for a Machine": {full, true}} {
		t.Run(name, func(t *testing.T) {
			spoke, err := c.Convert(tt.hub, "v1beta1")
			if err != nil {
				t.Fatal(err)
			}
			_, got := spoke.(*clusterv1beta1.Machine).Annotations[conversion.DataAnnotation]
			if got != tt.want {
				t.Errorf("annotation present: got %t, want %t", got, tt.want)
			}
			hub, err := c.Convert(spoke, conversion.HubVersion)
			if err != nil {
				t.Fatal(err)
			}
			if len(hub.(*clusterv1.Machine).Annotations) > 0 {
				t.Errorf("the hub has annotations: %v", hub.(*clusterv1.Machine).Annotations)
			}
		})
	}
	broken := &clusterv1beta1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: "m", Annotations: map[string]string{conversion.DataAnnotation: "{"},
	}}
	_, err := c.Convert(broken, conversion.HubVersion)
	if err == nil || !strings.Contains(err.Error(), conversion.DataAnnotation) {
		t.Errorf("an unreadable annotation must be named, got %v", err)
	}
}

// CV-01: a v1beta1 manifest as users write it means in v1beta2 what it says, and no more.
func TestPlainManifest(t *testing.T) {
	c := newConverter(t)
	in := &clusterv1beta1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns"},
		Spec: clusterv1beta1.ClusterSpec{
			ClusterNetwork: &clusterv1beta1.ClusterNetwork{
				Pods: &clusterv1beta1.NetworkRanges{CIDRBlocks: []string{"172.31.128.0/17"}},
			},
			InfrastructureRef: &corev1.ObjectReference{
				APIVersion: "infrastructure.slipway.dev/v1alpha1", Kind: "LocalCluster", Name: "c",
			},
			Topology: &clusterv1beta1.Topology{Class: "k", Variables: []clusterv1beta1.ClusterVariable{{
				Name: "v", Value: apiextensionsv1.JSON{Raw: []byte(`{"paused":false,"required":0}`)},
			}}},
		},
	}
	got, err := c.Convert(in, conversion.HubVersion)
	if err != nil {
		t.Fatal(err)
	}
	want := &clusterv1.Cluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster"},
		ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns"},
		Spec: clusterv1.ClusterSpec{
			ClusterNetwork: clusterv1.ClusterNetwork{
				Pods: clusterv1.NetworkRanges{CIDRBlocks: []string{"172.31.128.0/17"}},
			},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: "infrastructure.slipway.dev", Kind: "LocalCluster", Name: "c",
			},
			Topology: clusterv1.Topology{
				ClassRef: clusterv1.ClusterClassRef{Name: "k"},
				Variables: []clusterv1.ClusterVariable{{
					Name: "v", Value: apiextensionsv1.JSON{Raw: []byte(`{"paused":false,"required":0}`)},
				}},
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// CV-01: a kind that no CRD serves still converts.
func TestUnknownKindInReference(t *testing.T) {
	c, err := conversion.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Convert(machinePool(), "v1beta1")
	if err != nil {
		t.Fatal(err)
	}
	ref := got.(*clusterv1beta1.MachinePool).Spec.Template.Spec.InfrastructureRef
	want := corev1.ObjectReference{
		APIVersion: "infrastructure.slipway.dev/unknown", Kind: "LocalMachinePool", Name: "pool", Namespace: "ns",
	}
	if diff := cmp.Diff(want, ref); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// CV-01: false stays where v1beta2 requires the field, and goes where v1beta2 wants one of two.
func TestFalse(t *testing.T) {
	c := newConverter(t)
	in := &bootstrapv1beta1.KubeadmConfig{Spec: bootstrapv1beta1.KubeadmConfigSpec{
		DiskSetup: &bootstrapv1beta1.DiskSetup{Partitions: []bootstrapv1beta1.Partition{
			{Device: "/dev/a", Layout: false},
			{Device: "/dev/b", DiskLayout: []bootstrapv1beta1.PartitionSpec{{Percentage: 100}}},
		}},
		Files: []bootstrapv1beta1.File{{Path: "/a", Append: false}},
	}}
	got, err := c.Convert(in, conversion.HubVersion)
	if err != nil {
		t.Fatal(err)
	}
	want := bootstrapv1.KubeadmConfigSpec{
		DiskSetup: bootstrapv1.DiskSetup{Partitions: []bootstrapv1.Partition{
			{Device: "/dev/a", Layout: new(false)},
			{Device: "/dev/b", DiskLayout: []bootstrapv1.PartitionSpec{{Percentage: 100}}},
		}},
		Files: []bootstrapv1.File{{Path: "/a"}},
	}
	if diff := cmp.Diff(want, got.(*bootstrapv1.KubeadmConfig).Spec); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// CV-01, KB-07: the timeouts of the older form have their place in the newer.
func TestTimeouts(t *testing.T) {
	c := newConverter(t)
	in := &bootstrapv1beta1.KubeadmConfig{Spec: bootstrapv1beta1.KubeadmConfigSpec{
		ClusterConfiguration: &bootstrapv1beta1.ClusterConfiguration{APIServer: bootstrapv1beta1.APIServer{
			TimeoutForControlPlane: &metav1.Duration{Duration: 2 * time.Minute},
		}},
		JoinConfiguration: &bootstrapv1beta1.JoinConfiguration{Discovery: bootstrapv1beta1.Discovery{
			Timeout: &metav1.Duration{Duration: time.Minute},
		}},
	}}
	got, err := c.Convert(in, conversion.HubVersion)
	if err != nil {
		t.Fatal(err)
	}
	spec := got.(*bootstrapv1.KubeadmConfig).Spec
	wantInit := bootstrapv1.Timeouts{ControlPlaneComponentHealthCheckSeconds: new(int32(120))}
	wantJoin := bootstrapv1.Timeouts{
		ControlPlaneComponentHealthCheckSeconds: new(int32(120)), DiscoverySeconds: new(int32(60)),
	}
	if diff := cmp.Diff(wantInit, spec.InitConfiguration.Timeouts); diff != "" {
		t.Errorf("init (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantJoin, spec.JoinConfiguration.Timeouts); diff != "" {
		t.Errorf("join (-want +got):\n%s", diff)
	}
}

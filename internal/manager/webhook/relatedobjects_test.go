package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/admission"
	"github.com/slipwayhq/slipway/internal/kube"
)

// TestUpgrading: workers are upgraded as long as their spec or what runs is of another version.
func TestUpgrading(t *testing.T) { // CL-34
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	meta := func(name, cluster string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "n", Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: cluster, clusterv1.ClusterTopologyOwnedLabel: ""}}
	}
	deployment := func(name, spec string, runs ...string) *clusterv1.MachineDeployment {
		d := &clusterv1.MachineDeployment{ObjectMeta: meta(name, "c")}
		d.Spec.Template.Spec.Version = spec
		for _, version := range runs {
			d.Status.Versions = append(d.Status.Versions, clusterv1.StatusVersion{Version: version})
		}
		return d
	}
	pool := &clusterv1.MachinePool{ObjectMeta: meta("pool", "c")}
	pool.Spec.Template.Spec.Version = "v1.36.3"
	pool.Status.Versions = []clusterv1.StatusVersion{{Version: "v1.35.4"}, {Version: "v1.36.3"}}
	elsewhere := deployment("elsewhere", "v1.30.0")
	elsewhere.ObjectMeta = meta("elsewhere", "other")
	unmanaged := deployment("unmanaged", "v1.30.0")
	delete(unmanaged.Labels, clusterv1.ClusterTopologyOwnedLabel)
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		deployment("done", "v1.36.3", "v1.36.3"), deployment("distribution", "v1.36.3", "v1.36.3-eks-1"), deployment("waits", "v1.35.4", "v1.35.4"),
		deployment("rolls", "v1.36.3", "v1.35.4", "v1.36.3"), pool, elsewhere, unmanaged,
	).Build()
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}}
	cluster.Spec.Topology.Version = "v1.36.3"
	f := &relatedReader{live: live, refs: kube.NewReferences(live, nil)}
	got, err := f.upgrading(t.Context(), cluster)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"MachineDeployment rolls", "MachineDeployment waits", "MachinePool pool"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestSetBack: who scales a MachineDeployment of a topology is told of a Cluster that has another number for it, and only then.
func TestSetBack(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}}
	cluster.Spec.Topology.Workers.MachineDeployments = []clusterv1.MachineDeploymentTopology{{Name: "fixed", Replicas: new(int32(2))}, {Name: "free"}}
	deployment := func(name, in, of string, labels ...string) *clusterv1.MachineDeployment {
		d := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, Labels: map[string]string{}}}
		d.Spec.ClusterName = of
		if in != "" {
			d.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel] = in
		}
		for _, label := range labels {
			d.Labels[label] = ""
		}
		return d
	}
	owned := clusterv1.ClusterTopologyOwnedLabel
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster,
		deployment("fixed", "fixed", "c", owned), deployment("free", "free", "c", owned), deployment("left", "left", "c", owned),
		deployment("alone", "", "c"), deployment("orphan", "fixed", "gone", owned), deployment("forged", "fixed", "c"),
	).Build()
	f := &relatedReader{live: live, topologies: true}
	for name, want := range map[string]*admission.ReplicasOwner{
		"fixed": {Cluster: "c", Topology: "fixed", Replicas: 2}, "free": nil, "left": nil, "alone": nil, "orphan": nil, "forged": nil, "absent": nil,
	} {
		r := &admission.Request{New: &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}, Spec: autoscalingv1.ScaleSpec{Replicas: 5}}}
		if err := f.scaled(t.Context(), "machinedeployments", r); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, r.Related.ReplicasOwner); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
		verdict := admission.Validate(*r)
		if len(verdict.Errors) > 0 || (len(verdict.Warnings) > 0) != (want != nil) {
			t.Errorf("%s: %+v", name, verdict)
		}
	}
	f.topologies = false
	r := &admission.Request{New: &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "fixed"}}}
	if err := f.scaled(t.Context(), "machinedeployments", r); err != nil || r.Related.ReplicasOwner != nil {
		t.Errorf("without topologies: %v, %v", r.Related.ReplicasOwner, err)
	}
}

// TestOnHost: control planes of a class run on this host where its template is hosted and not simulated.
func TestOnHost(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := hostedv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	here := &hostedv1.HostedControlPlaneTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "here"}}
	simulated := &hostedv1.HostedControlPlaneTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "simulated"}}
	simulated.Spec.Template.Spec.Backend.Simulated = &hostedv1.SimulatedBackend{}
	f := &relatedReader{live: fake.NewClientBuilder().WithScheme(scheme).WithObjects(here, simulated).Build()}
	for _, c := range []struct {
		kind, name string
		want       bool
	}{
		{"HostedControlPlaneTemplate", "here", true}, {"HostedControlPlaneTemplate", "simulated", false},
		{"HostedControlPlaneTemplate", "absent", false}, {"KubeadmControlPlaneTemplate", "here", false},
	} {
		class := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "class"}}
		class.Spec.ControlPlane.TemplateRef = clusterv1.ClusterClassTemplateReference{Kind: c.kind, Name: c.name}
		if got := f.onHost(t.Context(), class); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
	if f.onHost(t.Context(), nil) {
		t.Error("without a class")
	}
}

// The claim of an address is read when the address is created, with and without the gate of topologies.
func TestClaimOfAddress(t *testing.T) { // IA-09
	scheme := runtime.NewScheme()
	if err := ipamv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	claim := &ipamv1.IPAddressClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}}
	address := func(of string) *ipamv1.IPAddress {
		return &ipamv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}, Spec: ipamv1.IPAddressSpec{ClaimRef: ipamv1.IPAddressClaimReference{Name: of}}}
	}
	f := &relatedReader{live: fake.NewClientBuilder().WithScheme(scheme).WithObjects(claim).Build()}
	for name, tt := range map[string]struct {
		request admission.Request
		want    bool
	}{
		"its claim":      {admission.Request{New: address("c")}, true},
		"no such claim":  {admission.Request{New: address("gone")}, false},
		"nothing to ask": {admission.Request{New: address("c"), Old: address("c")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := f.read(t.Context(), &tt.request, false); err != nil {
				t.Fatal(err)
			}
			if got := tt.request.Related.Claim != nil; got != tt.want {
				t.Errorf("claim read: %t, want %t", got, tt.want)
			}
		})
	}
}

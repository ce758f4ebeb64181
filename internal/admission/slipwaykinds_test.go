package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
)

// IC-06, IM-08, IM-09, IP2-09, IP2-10, CP-13: templates stay as they are, except when the topology controller asks.
func TestOwnTemplates(t *testing.T) {
	image := func(image string) localv1.LocalMachineBackend {
		return localv1.LocalMachineBackend{Container: &localv1.ContainerMachine{Image: image}}
	}
	machine := func(i string) runtime.Object {
		o := &localv1.LocalMachineTemplate{}
		o.Spec.Template.Spec.Backend = image(i)
		return o
	}
	pool := func(i string) runtime.Object {
		o := &localv1.LocalMachinePoolTemplate{}
		o.Spec.Template.Spec.Template.Backend = image(i)
		return o
	}
	cluster := func(subnet string) runtime.Object {
		o := &localv1.LocalClusterTemplate{}
		o.Spec.Template.Spec.Backend.Container = &localv1.ContainerCluster{Network: localv1.ContainerNetwork{Subnet: subnet}}
		return o
	}
	hosted := func(repository string) runtime.Object {
		o := &hostedv1.HostedControlPlaneTemplate{}
		o.Spec.Template.Spec.Addons.ImageRepository = repository
		return o
	}
	for name, build := range map[string]func(string) runtime.Object{
		"LocalMachineTemplate": machine, "LocalMachinePoolTemplate": pool,
		"LocalClusterTemplate": cluster, "HostedControlPlaneTemplate": hosted,
	} {
		t.Run(name, func(t *testing.T) {
			asking := build("b")
			asking.(metav1.Object).SetAnnotations(map[string]string{clusterv1.TopologyDryRunAnnotation: ""})
			for _, step := range []struct {
				reason string
				req    Request
				want   []string
			}{
				{"created", Request{New: build("a")}, nil},
				{"the same again", Request{Old: build("a"), New: build("a")}, nil},
				{"changed", Request{Old: build("a"), New: build("b")}, []string{"spec.template"}},
				{"a dry run of a user", Request{Old: build("a"), New: build("b"), DryRun: true}, []string{"spec.template"}},
				{"the annotation alone", Request{Old: build("a"), New: asking}, []string{"spec.template"}},
				{"the topology controller asks", Request{Old: build("a"), New: asking, DryRun: true}, nil},
			} {
				if diff := cmp.Diff(step.want, problems(Validate(step.req))); diff != "" {
					t.Errorf("%s (-want +got):\n%s", step.reason, diff)
				}
			}
		})
	}
}

// Labels in the template of a pool end on LocalMachines.
func TestLocalMachinePool(t *testing.T) {
	p := &localv1.LocalMachinePool{}
	p.Spec.Template.ObjectMeta.Labels = map[string]string{"a": "not valid"}
	want := []string{"spec.template.metadata.labels"}
	if diff := cmp.Diff(want, problems(Validate(Request{New: p}))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What another system manages stays that way (IC-07).
func TestManagedByStays(t *testing.T) {
	const name = "metadata.annotations[" + clusterv1.ManagedByAnnotation + "]"
	for kind, object := range map[string]runtime.Object{
		"LocalCluster": &localv1.LocalCluster{}, "LocalMachine": &localv1.LocalMachine{}, "LocalMachinePool": &localv1.LocalMachinePool{},
	} {
		with := func(annotations map[string]string) runtime.Object {
			o := object.DeepCopyObject()
			o.(metav1.Object).SetAnnotations(annotations)
			return o
		}
		terraform, empty := map[string]string{clusterv1.ManagedByAnnotation: "terraform"}, map[string]string{clusterv1.ManagedByAnnotation: ""}
		for _, step := range []struct {
			reason string
			req    Request
			want   []string
		}{
			{"created", Request{New: with(terraform)}, nil},
			{"handed to another system", Request{Old: with(nil), New: with(terraform)}, nil},
			{"of another system than before", Request{Old: with(terraform), New: with(empty)}, nil},
			{"stays", Request{Old: with(terraform), New: with(terraform)}, nil},
			{"of none", Request{Old: with(nil), New: with(map[string]string{"a": "b"})}, nil},
			{"removed", Request{Old: with(terraform), New: with(nil)}, []string{name}},
			{"an empty value counts as well", Request{Old: with(empty), New: with(map[string]string{"a": "b"})}, []string{name}},
		} {
			if diff := cmp.Diff(step.want, problems(Validate(step.req))); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", kind, step.reason, diff)
			}
		}
	}
}

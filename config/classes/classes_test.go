package classes_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/config/classes"
	"github.com/slipwayhq/slipway/internal/topology/patch"
	"github.com/slipwayhq/slipway/internal/topology/variables"
)

func TestClassesThatShip(t *testing.T) {
	for _, name := range classes.Names() {
		t.Run(name, func(t *testing.T) {
			objects, ok, err := classes.Objects(name, "team")
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			templates := map[string]bool{}
			for _, o := range objects[:len(objects)-1] {
				templates[o.GetAPIVersion()+" "+o.GetKind()+" "+o.GetName()] = false
				if o.GetNamespace() != "team" {
					t.Errorf("%s %s is in namespace %q", o.GetKind(), o.GetName(), o.GetNamespace())
				}
			}
			class := &clusterv1.ClusterClass{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[len(objects)-1].Object, class); err != nil {
				t.Fatal(err)
			}
			if class.Kind != "ClusterClass" || class.Name != name {
				t.Fatalf("the class is the last object: %s %s", class.Kind, class.Name)
			}
			for _, ref := range references(class) {
				key := ref.APIVersion + " " + ref.Kind + " " + ref.Name
				if _, ok := templates[key]; !ok {
					t.Errorf("the class refers to %s, which does not ship with it", key)
				}
				templates[key] = true
			}
			for key, used := range templates {
				if !used {
					t.Errorf("nothing refers to %s", key)
				}
			}
			if problems := variables.ValidateDefinitions(class.Spec.Variables, nil, field.NewPath("variables")); len(problems) > 0 {
				t.Error(problems.ToAggregate())
			}
			if _, err := patch.Compile(class); err != nil {
				t.Error(err)
			}
			for _, v := range class.Spec.Variables {
				if v.Schema.OpenAPIV3Schema.Description == "" {
					t.Errorf("variable %s says nothing about itself", v.Name)
				}
			}
		})
	}
	if objects, ok, err := classes.Objects("../rbac/users", "team"); ok || err != nil || objects != nil {
		t.Errorf("another file is no class: %v %v", ok, err)
	}
}

func references(c *clusterv1.ClusterClass) []clusterv1.ClusterClassTemplateReference {
	refs := []clusterv1.ClusterClassTemplateReference{c.Spec.Infrastructure.TemplateRef, c.Spec.ControlPlane.TemplateRef}
	if machines := c.Spec.ControlPlane.MachineInfrastructure.TemplateRef; machines.IsDefined() {
		refs = append(refs, machines)
	}
	for _, w := range c.Spec.Workers.MachineDeployments {
		refs = append(refs, w.Bootstrap.TemplateRef, w.Infrastructure.TemplateRef)
	}
	for _, w := range c.Spec.Workers.MachinePools {
		refs = append(refs, w.Bootstrap.TemplateRef, w.Infrastructure.TemplateRef)
	}
	return refs
}

// The network of a class's clusters is what the variables say, and internal unless they ask for a way out.
func TestNetworkOfAClass(t *testing.T) {
	for _, name := range []string{"local", "kubeadm"} {
		objects, program := compiled(t, name)
		var template *unstructured.Unstructured
		for _, o := range objects {
			if o.GetKind() == "LocalClusterTemplate" {
				template = o
			}
		}
		for given, want := range map[string]map[string]any{
			`{subnet: "", internet: false}`:            nil,
			`{subnet: 172.31.0.0/16, internet: false}`: {"subnet": "172.31.0.0/16"},
			`{subnet: "", internet: true}`:             {"internet": true},
			`{subnet: 172.31.0.0/16, internet: true}`:  {"subnet": "172.31.0.0/16", "internet": true},
		} {
			values := variables.Values{}
			if err := yaml.Unmarshal([]byte(given), &values); err != nil {
				t.Fatal(err)
			}
			result, _, err := program.Apply(values, []patch.Item{{UID: "i", Role: patch.InfrastructureCluster, Object: template}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, _, _ := unstructured.NestedMap(result["i"].Object, "spec", "template", "spec", "backend", "container", "network")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s with %s (-want +got):\n%s", name, given, diff)
			}
		}
	}
}

// The host settings and the cleaning of a class reach the machines of all its groups.
func TestHostSettings(t *testing.T) {
	given := `{hostSettings: {registryMirrors: [https://mirror.example], proxy: {http: "http://proxy:3128", "no": [10.0.0.0/8]}, additionalTrustedCAs: PEM}, bundle: Managed, podSecurity: privileged,
		hostCleaning: {bundles: Delete, unreachableTimeoutSeconds: 0}}`
	cleaning := infrav1.SSHMachineCleaning{Bundles: infrav1.SSHBundleCacheDelete, UnreachableTimeoutSeconds: ptr.To[int32](0)}
	want := infrav1.SSHHostSettings{
		Proxy: infrav1.SSHHostProxy{HTTP: "http://proxy:3128", No: []string{"10.0.0.0/8"}}, RegistryMirrors: []string{"https://mirror.example"}, AdditionalTrustedCAs: "PEM",
	}
	for name, roles := range map[string]map[string]patch.Role{
		classes.SSH:        {"ssh-worker": patch.DeploymentInfrastructure},
		classes.SSHKubeadm: {"ssh-kubeadm-worker": patch.DeploymentInfrastructure, "ssh-kubeadm-control-plane": patch.ControlPlaneMachines},
	} {
		objects, program := compiled(t, name)
		for _, o := range objects {
			if o.GetKind() != "SSHMachineTemplate" {
				continue
			}
			values := variables.Values{}
			if err := yaml.Unmarshal([]byte(given), &values); err != nil {
				t.Fatal(err)
			}
			result, _, err := program.Apply(values, []patch.Item{{UID: "i", Role: roles[o.GetName()], Class: "default-worker", Object: o}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			template := &infrav1.SSHMachineTemplate{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(result["i"].Object, template); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, template.Spec.Template.Spec.Settings); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", name, o.GetName(), diff)
			}
			if diff := cmp.Diff(cleaning, template.Spec.Template.Spec.Cleaning); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", name, o.GetName(), diff)
			}
		}
	}
}

// The images of the control plane are those of the bundle, or of Kubernetes on hosts that do not have it.
func TestImagesWithoutBundle(t *testing.T) {
	objects, program := compiled(t, classes.SSHKubeadm)
	for bundle, want := range map[string]string{"Managed": "slipway.dev", "None": "registry.k8s.io"} {
		for _, o := range objects {
			if o.GetKind() != "KubeadmControlPlaneTemplate" {
				continue
			}
			values := variables.Values{}
			if err := yaml.Unmarshal([]byte("{bundle: "+bundle+", podSecurity: privileged}"), &values); err != nil {
				t.Fatal(err)
			}
			result, _, err := program.Apply(values, []patch.Item{{UID: "i", Role: patch.ControlPlane, Object: o}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			template := &controlplanev1.KubeadmControlPlaneTemplate{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(result["i"].Object, template); err != nil {
				t.Fatal(err)
			}
			if got := template.Spec.Template.Spec.KubeadmConfigSpec.ClusterConfiguration.ImageRepository; got != want {
				t.Errorf("bundle %s: %q, want %q", bundle, got, want)
			}
		}
	}
}

// compiled returns the objects of a class, and its patches.
func compiled(t *testing.T, name string) ([]*unstructured.Unstructured, *patch.Program) {
	t.Helper()
	objects, _, err := classes.Objects(name, "team")
	if err != nil {
		t.Fatal(err)
	}
	class := &clusterv1.ClusterClass{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[len(objects)-1].Object, class); err != nil {
		t.Fatal(err)
	}
	for _, v := range class.Spec.Variables {
		class.Status.Variables = append(class.Status.Variables, clusterv1.ClusterClassStatusVariable{Name: v.Name,
			Definitions: []clusterv1.ClusterClassStatusVariableDefinition{{From: clusterv1.VariableDefinitionFromInline}}})
	}
	program, err := patch.Compile(class)
	if err != nil {
		t.Fatal(err)
	}
	return objects, program
}

// Control plane nodes of class kubeadm have the patches of static Pods for init and for joins, and the pod security that is asked for beside them.
func TestFilesOfControlPlanes(t *testing.T) {
	objects, program := compiled(t, "kubeadm")
	var template *unstructured.Unstructured
	for _, o := range objects {
		if o.GetKind() == "KubeadmControlPlaneTemplate" {
			template = o
		}
	}
	patches := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
	for security, files := range map[string]int{"privileged": len(patches), "baseline": len(patches) + 1} {
		values := variables.Values{}
		if err := yaml.Unmarshal([]byte(`{subnet: "", internet: false, podSecurity: `+security+`}`), &values); err != nil {
			t.Fatal(err)
		}
		result, _, err := program.Apply(values, []patch.Item{{UID: "i", Role: patch.ControlPlane, Object: template}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		plane := &controlplanev1.KubeadmControlPlaneTemplate{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(result["i"].Object, plane); err != nil {
			t.Fatal(err)
		}
		config := plane.Spec.Template.Spec.KubeadmConfigSpec
		if len(config.Files) != files {
			t.Errorf("%s: %d files, want %d", security, len(config.Files), files)
		}
		for i, component := range patches {
			pod := &corev1.Pod{}
			if err := yaml.UnmarshalStrict([]byte(config.Files[i].Content), pod); err != nil {
				t.Fatal(err)
			}
			want := config.InitConfiguration.Patches.Directory + "/" + component + ".yaml"
			if probe := pod.Spec.Containers[0].StartupProbe; config.Files[i].Path != want || pod.Spec.Containers[0].Name != component || probe.PeriodSeconds != 1 || probe.FailureThreshold < 240 {
				t.Errorf("%s: file %d is %+v, want %s", security, i, config.Files[i], want)
			}
		}
		if config.InitConfiguration.Patches != config.JoinConfiguration.Patches {
			t.Errorf("patches of init %v, of join %v", config.InitConfiguration.Patches, config.JoinConfiguration.Patches)
		}
		if last := config.Files[len(config.Files)-1].Content; strings.Contains(last, "enforce: baseline") != (security == "baseline") {
			t.Errorf("%s: the last file is %s", security, last)
		}
	}
}

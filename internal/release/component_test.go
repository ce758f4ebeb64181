package release_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/component-base/featuregate"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/slipwayhq/slipway/internal/providerset"
	"github.com/slipwayhq/slipway/internal/release"
)

func options() release.ComponentOptions {
	return release.ComponentOptions{Version: "v0.1.0", Image: "example.org/team/manager"}
}

// released are the components of each provider, and those of the manager of all.
func released(t *testing.T) map[string][]*unstructured.Unstructured {
	t.Helper()
	out := map[string][]*unstructured.Unstructured{}
	var err error
	for _, set := range release.Providers() {
		if out[string(set.Name)], err = release.ProviderObjects(set, options()); err != nil {
			t.Fatal(err)
		}
	}
	if out["all"], err = release.ManagerObjects(options()); err != nil {
		t.Fatal(err)
	}
	return out
}

func deployment(t *testing.T, objects []*unstructured.Unstructured) *appsv1.Deployment {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() == "Deployment" {
			d := &appsv1.Deployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d); err != nil {
				t.Fatal(err)
			}
			return d
		}
	}
	t.Fatal("there is no Deployment")
	return nil
}

// SC-01: the Pods keep the standard "restricted" in its newest version, and the namespace enforces it.
func TestPodsAreRestricted(t *testing.T) {
	checks, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, objects := range released(t) {
		template := deployment(t, objects).Spec.Template
		for _, result := range checks.EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, &template.ObjectMeta, &template.Spec) {
			if !result.Allowed {
				t.Errorf("%s: %s: %s", name, result.ForbiddenReason, result.ForbiddenDetail)
			}
		}
		if got := objects[0].GetLabels()["pod-security.kubernetes.io/enforce"]; objects[0].GetKind() != "Namespace" || got != "restricted" {
			t.Errorf("%s: %s %s enforces %q", name, objects[0].GetKind(), objects[0].GetName(), got)
		}
		if c := template.Spec.Containers[0]; c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
			t.Errorf("%s: the root file system can be written", name)
		}
	}
}

// The data directory is a folder that the manager creates: it sets the folder's mode, which only its owner may, and a volume belongs
// to root.
func TestDataDirectoryIsInItsVolume(t *testing.T) {
	for name, objects := range released(t) {
		c := deployment(t, objects).Spec.Template.Spec.Containers[0]
		i := slices.IndexFunc(c.Args, func(a string) bool { return strings.HasPrefix(a, "--data-dir=") })
		if i < 0 || !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
			return strings.HasPrefix(c.Args[i], "--data-dir="+m.MountPath+"/")
		}) {
			t.Errorf("%s: the data directory is no folder in a volume: %q", name, c.Args)
		}
	}
}

// The manager of the SSH provider finds its bundles in a volume that the operator can replace.
func TestBundlesAreInAVolume(t *testing.T) {
	for name, objects := range released(t) {
		template := deployment(t, objects).Spec.Template.Spec
		c := template.Containers[0]
		at := slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "bundles" })
		has := at >= 0 && slices.Contains(c.Args, "--bundles="+c.VolumeMounts[at].MountPath) &&
			slices.ContainsFunc(template.Volumes, func(v corev1.Volume) bool { return v.Name == "bundles" && v.EmptyDir != nil })
		if want := name == "all" || name == string(providerset.InfrastructureSSH); has != want {
			t.Errorf("%s: it has a volume with bundles: %t; %q, %+v", name, has, c.Args, c.VolumeMounts)
		}
	}
}

// TestPatchOfBundles applies the patch of docs/ssh-operations.md, with which the operator replaces the volume, to the Deployment.
func TestPatchOfBundles(t *testing.T) {
	page, err := os.ReadFile("../../docs/ssh-operations.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`--patch \\\n\s*'([^']*)'`).FindSubmatch(page)
	if found == nil {
		t.Fatal("docs/ssh-operations.md has no patch")
	}
	objects, err := json.Marshal(deployment(t, released(t)[string(providerset.InfrastructureSSH)]))
	if err != nil {
		t.Fatal(err)
	}
	patched, err := strategicpatch.StrategicMergePatch(objects, found[1], &appsv1.Deployment{})
	if err != nil {
		t.Fatal(err)
	}
	d := &appsv1.Deployment{}
	if err := json.Unmarshal(patched, d); err != nil {
		t.Fatal(err)
	}
	volumes := d.Spec.Template.Spec.Volumes
	i := slices.IndexFunc(volumes, func(v corev1.Volume) bool { return v.Name == "bundles" })
	want := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "slipway-bundles"}}
	if len(volumes) != 3 || i < 0 || cmp.Diff(want, volumes[i].VolumeSource) != "" {
		t.Errorf("the volumes are %+v", volumes)
	}
}

// FG-02: every gate of the program has the variable that users know, with the program's own default.
func TestGatesAreVariables(t *testing.T) {
	gates, err := providerset.NewGates()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for gate := range gates.GetAll() {
		if name := string(gate); name != "AllAlpha" && name != "AllBeta" {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	for name, objects := range released(t) {
		args := deployment(t, objects).Spec.Template.Spec.Containers[0].Args
		i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "--feature-gates=") })
		var got []string
		for _, m := range regexp.MustCompile(`(\w+)=\$\{(?:EXP_\w+|CLUSTER_TOPOLOGY):=\w+\}`).FindAllStringSubmatch(args[i], -1) {
			got = append(got, m[1])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: gates (-of the program +with a variable):\n%s", name, diff)
		}
		for _, setting := range strings.Split(strings.TrimPrefix(string(release.WithDefaults([]byte(args[i]))), "--feature-gates="), ",") {
			gate, value, _ := strings.Cut(setting, "=")
			if want := strconv.FormatBool(gates.Enabled(featuregate.Feature(gate))); value != want {
				t.Errorf("%s: %s is %s where the variable is not set, and %s in the program", name, gate, value, want)
			}
		}
	}
}

// No one but the manager's ServiceAccount gets the manager's rights, and only the core brings roles of people: several providers are
// installed and deleted one by one.
func TestProvidersShareNothing(t *testing.T) {
	owner := map[string]string{}
	for name, objects := range released(t) {
		if name == "all" {
			continue
		}
		namespace := objects[0].GetName()
		for _, o := range objects {
			key := o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
			if other := owner[key]; other != "" {
				t.Errorf("%s is in the components of %s and of %s", key, other, name)
			}
			owner[key] = name
			if ns := o.GetNamespace(); ns != "" && ns != namespace {
				t.Errorf("%s: %s is outside of namespace %s", name, key, namespace)
			}
			if got := o.GetLabels()["cluster.x-k8s.io/provider"]; got != name { // CC2-02, CC2-14
				t.Errorf("%s: %s has the provider label %q", name, key, got)
			}
			if o.GetKind() != "ClusterRoleBinding" && o.GetKind() != "RoleBinding" {
				continue
			}
			subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
			want := []any{map[string]any{"kind": "ServiceAccount", "namespace": namespace, "name": deployment(t, objects).Spec.Template.Spec.ServiceAccountName}}
			if diff := cmp.Diff(want, subjects); diff != "" {
				t.Errorf("%s: %s binds (-want +got):\n%s", name, key, diff)
			}
		}
	}
}

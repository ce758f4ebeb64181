package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// In dry runs of the topology controller, the defaults that older versions of Cluster API wrote into templates are no difference, in either
// direction; what is written, and what is no default, stays as it is.
func TestOlderDefaultsOfTemplates(t *testing.T) { // KB-26
	template := func(format bootstrapv1.Format, pull corev1.PullPolicy, dryRun bool) *bootstrapv1.KubeadmConfigTemplate {
		o := &bootstrapv1.KubeadmConfigTemplate{}
		o.Spec.Template.Spec.Format = format
		o.Spec.Template.Spec.InitConfiguration.NodeRegistration.ImagePullPolicy = pull
		o.Spec.Template.Spec.JoinConfiguration.NodeRegistration.ImagePullPolicy = pull
		if dryRun {
			o.Annotations = map[string]string{clusterv1.TopologyDryRunAnnotation: ""}
		}
		return o
	}
	older, bare := template("cloud-config", "IfNotPresent", true), template("", "", true)
	for name, tc := range map[string]struct {
		old, new *bootstrapv1.KubeadmConfigTemplate
		dryRun   bool
		want     *bootstrapv1.KubeadmConfigTemplate
	}{
		"leaves them out":      {older, bare, true, older},
		"has them":             {bare, older, true, bare},
		"written":              {older, bare, false, bare},
		"no annotation":        {older, template("", "", false), true, template("", "", false)},
		"another format":       {template("ignition", "IfNotPresent", true), bare, true, template("", "IfNotPresent", true)},
		"another pull policy":  {template("cloud-config", "Always", true), bare, true, template("cloud-config", "", true)},
		"from one to another":  {older, template("ignition", "Never", true), true, template("ignition", "Never", true)},
		"nothing is different": {older, older, true, older},
	} {
		got, changed := Default(Request{Old: tc.old, New: tc.new, DryRun: tc.dryRun})
		if diff := cmp.Diff(tc.want, got); diff != "" || changed != !cmp.Equal(tc.new, tc.want) {
			t.Errorf("%s: changed %v (-want +got):\n%s", name, changed, diff)
		}
	}
	if got, changed := Default(Request{New: bare, DryRun: true}); changed || got != bare {
		t.Error("a template that is created gets defaults")
	}
}

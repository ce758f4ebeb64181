package foreign

import (
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/test/foreign/provider"
)

// newDeployment returns a MachineDeployment of foreign templates.
func (w *world) newDeployment(f family, machines string, replicas int32) *clusterv1.MachineDeployment {
	d := &clusterv1.MachineDeployment{ObjectMeta: w.meta("d")}
	d.Spec.ClusterName, d.Spec.Replicas, d.Spec.Template.Spec = "c", &replicas, f.machineSpec(machines, "t")
	return d
}

// refusalStory has machines that admission refuses.
func (w *world) refusalStory(f family) {
	w.up(f)
	policy, binding := w.refuseHuge(f.machine)
	huge := f.machine.New(w.namespace, "probe")
	provider.Set(huge, "huge", "spec", "size")
	refused := false
	for deadline := time.Now().Add(patience); !refused && time.Now().Before(deadline); <-time.After(100 * time.Millisecond) {
		err := w.Create(w.Context(), huge.DeepCopy(), client.DryRunAll)
		refused = err != nil && strings.Contains(err.Error(), "no huge machines")
	}
	d, set := w.newDeployment(f, "huge", 2), &clusterv1.MachineSet{}
	w.create(template(w, f.machineTemplate, "huge"), template(w, f.configTemplate, "t"), d)
	w.check("60 why machines cannot be created is said, and nothing is left of them", func(w *world) {
		w.eventually(d, func() string {
			var sets clusterv1.MachineSetList
			w.must(w.List(w.Context(), &sets, client.InNamespace(w.namespace)))
			if len(sets.Items) == 0 {
				return "no MachineSet"
			}
			set = &sets.Items[0]
			return ""
		})
		w.saying(set, "ScalingUp", "True ScalingUp", "no huge machines")
		w.saying(d, "ScalingUp", "True")
		w.eventually(d, func() string {
			machines, infra, configs := w.machinesOf(clusterv1.MachineDeploymentNameLabel, "d"), w.list(f.machine), w.list(f.config)
			return unless(len(machines)+len(infra)+len(configs) == 0, "%d Machines, %d %s, %d %s are left", len(machines), len(infra), f.machine.Kind, len(configs), f.config.Kind)
		})
	})
	w.check("60 they are created when they are not refused any more", func(w *world) {
		w.must(w.Delete(w.Context(), binding))
		w.must(w.Delete(w.Context(), policy))
		w.eventually(set, func() string {
			change(w, set, func(s *clusterv1.MachineSet) {
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, "touched", time.Now().String())
			})
			n := set.Status.AvailableReplicas
			return unless(n != nil && *n == 2, "%v available", n)
		})
	})
}

// refuseHuge lets admission refuse machines of the size huge in the story's namespace.
func (w *world) refuseHuge(k provider.Kind) (client.Object, client.Object) {
	w.Helper()
	deny := []admissionv1.ValidationAction{admissionv1.Deny}
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	policy.Spec.MatchConstraints = &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule:       admissionv1.Rule{APIGroups: []string{k.Group}, APIVersions: []string{"*"}, Resources: []string{strings.ToLower(k.Kind) + "s"}},
	}}}}
	policy.Spec.Validations = []admissionv1.Validation{{
		Expression: "!has(object.spec) || !has(object.spec.size) || object.spec.size != 'huge'", Message: "no huge machines",
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	binding.Spec = admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: w.namespace, ValidationActions: deny,
		MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace}}}}
	w.create(policy, binding)
	return policy, binding
}

// healthStory has a machine whose Node is not healthy.
func (w *world) healthStory(f family) {
	w.up(f)
	d, timeout := w.newDeployment(f, "t", 2), int32(1)
	check := &clusterv1.MachineHealthCheck{ObjectMeta: w.meta("check")}
	check.Spec.ClusterName, check.Spec.Selector.MatchLabels = "c", map[string]string{clusterv1.MachineDeploymentNameLabel: "d"}
	check.Spec.Checks.UnhealthyNodeConditions = []clusterv1.UnhealthyNodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, TimeoutSeconds: &timeout}}
	w.create(template(w, f.machineTemplate, "t"), template(w, f.configTemplate, "t"), d, check)
	w.saying(d, "Available", "True")
	w.check("61 a machine that is not healthy is replaced", func(w *world) {
		before := w.machinesOf(clusterv1.MachineDeploymentNameLabel, "d")
		sick := before[0]
		change(w, w.node(&sick), func(n *corev1.Node) {
			i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
			n.Status.Conditions[i].Status, n.Status.Conditions[i].LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(time.Now().Add(-time.Hour))
		})
		w.gone(&sick, f.machine.New(w.namespace, sick.Name), f.config.New(w.namespace, sick.Name))
		w.eventually(d, func() string {
			n := d.Status.AvailableReplicas
			return unless(n != nil && *n == 2, "%v available", n)
		})
		w.stays(&before[1])
	})
}

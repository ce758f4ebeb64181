package webhook_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// of returns an object with a change.
func of[O client.Object](o O, change func(O)) client.Object {
	change(o)
	return o
}

func machineSet(name string) *clusterv1.MachineSet {
	s := &clusterv1.MachineSet{ObjectMeta: named(name)}
	s.Spec.ClusterName, s.Spec.Template.Spec = "c", machine("").Spec
	return s
}

func deployment(name string) *clusterv1.MachineDeployment {
	d := &clusterv1.MachineDeployment{ObjectMeta: named(name)}
	d.Spec.ClusterName, d.Spec.Template.Spec = "c", machine("").Spec
	return d
}

func drainRule(name string) *clusterv1.MachineDrainRule {
	r := &clusterv1.MachineDrainRule{ObjectMeta: named(name)}
	r.Spec.Drain.Behavior = clusterv1.MachineDrainRuleDrainBehaviorSkip
	r.Spec.Pods = []clusterv1.MachineDrainRulePodSelector{{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}}
	return r
}

// noOperator is a selector that no one can read.
func noOperator() metav1.LabelSelector {
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
}

// refusal is an object that must be refused with a field named.
type refusal struct {
	reason string
	object client.Object
	field  string
}

func refusedSets() map[string]refusal {
	no := clusterv1.ContractVersionedObjectReference{}
	type set = clusterv1.MachineSet
	sets := func(change func(*set)) client.Object { return of(machineSet("bad"), change) }
	return map[string]refusal{
		"replicas":            {"MS-22", sets(func(s *set) { s.Spec.Replicas = new(int32(-1)) }), "spec.replicas"},
		"selector":            {"MS-23", sets(func(s *set) { s.Spec.Selector = noOperator() }), "spec.selector"},
		"selector of others":  {"MS-23", sets(func(s *set) { s.Spec.Selector.MatchLabels = map[string]string{"a": "b"} }), "spec.template.metadata.labels"},
		"labels":              {"MS-23", sets(func(s *set) { s.Spec.Template.Labels = map[string]string{"a": "b c"} }), "spec.template.metadata.labels"},
		"another cluster":     {"MS-23", sets(func(s *set) { s.Spec.Template.Spec.ClusterName = "d" }), "spec.template.spec.clusterName"},
		"no cluster":          {"MS-23", sets(func(s *set) { s.Spec.ClusterName, s.Spec.Template.Spec.ClusterName = "", "" }), "clusterName"},
		"no template":         {"MS-23", sets(func(s *set) { s.Spec.Template.Spec.InfrastructureRef = no }), "spec.template.spec.infrastructureRef"},
		"no bootstrap":        {"MS-23", sets(func(s *set) { s.Spec.Template.Spec.Bootstrap.ConfigRef = no }), "spec.template.spec.bootstrap"},
		"version":             {"MS-23", sets(func(s *set) { s.Spec.Template.Spec.Version = "latest" }), "spec.template.spec.version"},
		"order of deletion":   {"MS-10", sets(func(s *set) { s.Spec.Deletion.Order = "Biggest" }), "spec.deletion.order"},
		"naming":              {"MS-06", sets(func(s *set) { s.Spec.MachineNaming.Template = "{{ .nothing }}" }), "spec.machineNaming.template"},
		"skipped checks":      {"MS-17", sets(func(s *set) { s.Annotations = skipping("Everything") }), "metadata.annotations"},
		"autoscaler's limits": {"AS-01", sets(func(s *set) { s.Annotations = map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "few"} }), "metadata.annotations"},
	}
}

func skipping(checks string) map[string]string {
	return map[string]string{clusterv1.MachineSetSkipPreflightChecksAnnotation: checks}
}

func refusedDeployments() map[string]refusal {
	no := clusterv1.ContractVersionedObjectReference{}
	type deploy = clusterv1.MachineDeployment
	deployments := func(change func(*deploy)) client.Object { return of(deployment("bad"), change) }
	rolling := func(surge, unavailable intstr.IntOrString) client.Object {
		return deployments(func(d *deploy) {
			d.Spec.Rollout.Strategy.Type = clusterv1.RollingUpdateMachineDeploymentStrategyType
			d.Spec.Rollout.Strategy.RollingUpdate.MaxSurge, d.Spec.Rollout.Strategy.RollingUpdate.MaxUnavailable = &surge, &unavailable
		})
	}
	const path = "spec.rollout.strategy.rollingUpdate."
	return map[string]refusal{
		"replicas":             {"DP-17", deployments(func(d *deploy) { d.Spec.Replicas = new(int32(-1)) }), "spec.replicas"},
		"no way to roll out":   {"DP-06", rolling(intstr.FromInt32(0), intstr.FromString("0%")), path + "maxUnavailable"},
		"surge":                {"DP-06", rolling(intstr.FromString("many"), intstr.FromInt32(0)), path + "maxSurge"},
		"negative surge":       {"DP-06", rolling(intstr.FromInt32(-1), intstr.FromInt32(1)), path + "maxSurge"},
		"unavailable":          {"DP-06", rolling(intstr.FromInt32(1), intstr.FromString("half")), path + "maxUnavailable"},
		"strategy":             {"DP-06", deployments(func(d *deploy) { d.Spec.Rollout.Strategy.Type = "Recreate" }), "spec.rollout.strategy.type"},
		"remediations at once": {"MS-18", deployments(func(d *deploy) { d.Spec.Remediation.MaxInFlight = new(intstr.FromString("all")) }), "spec.remediation.maxInFlight"},
		"selector":             {"DP-17", deployments(func(d *deploy) { d.Spec.Selector = noOperator() }), "spec.selector"},
		"selector of others":   {"DP-17", deployments(func(d *deploy) { d.Spec.Selector.MatchLabels = map[string]string{"a": "b"} }), "spec.template.metadata.labels"},
		"name":                 {"DP-17", of(deployment(strings.Repeat("a", 64)), func(*deploy) {}), "metadata.name"},
		"another cluster":      {"DP-17", deployments(func(d *deploy) { d.Spec.Template.Spec.ClusterName = "d" }), "spec.template.spec.clusterName"},
		"no template":          {"DP-17", deployments(func(d *deploy) { d.Spec.Template.Spec.InfrastructureRef = no }), "spec.template.spec.infrastructureRef"},
		"no bootstrap":         {"DP-17", deployments(func(d *deploy) { d.Spec.Template.Spec.Bootstrap.ConfigRef = no }), "spec.template.spec.bootstrap"},
		"version":              {"DP-17", deployments(func(d *deploy) { d.Spec.Template.Spec.Version = "1" }), "spec.template.spec.version"},
		"naming":               {"MS-06", deployments(func(d *deploy) { d.Spec.MachineNaming.Template = "same" }), "spec.machineNaming.template"},
		"skipped checks":       {"MS-17", deployments(func(d *deploy) { d.Annotations = skipping("Everything") }), "metadata.annotations"},
	}
}

func refusedPools() map[string]refusal {
	no := clusterv1.ContractVersionedObjectReference{}
	type mp = clusterv1.MachinePool
	pools := func(change func(*mp)) client.Object { return of(pool("bad"), change) }
	return map[string]refusal{
		"replicas":            {"MP-15", pools(func(p *mp) { p.Spec.Replicas = new(int32(-1)) }), "spec.replicas"},
		"no template":         {"MP-15", pools(func(p *mp) { p.Spec.Template.Spec.InfrastructureRef = no }), "spec.template.spec.infrastructureRef"},
		"no bootstrap":        {"MP-15", pools(func(p *mp) { p.Spec.Template.Spec.Bootstrap.ConfigRef = no }), "spec.template.spec.bootstrap"},
		"version":             {"MP-15", pools(func(p *mp) { p.Spec.Template.Spec.Version = "latest" }), "spec.template.spec.version"},
		"labels":              {"MP-15", pools(func(p *mp) { p.Spec.Template.Labels = map[string]string{"a": "b c"} }), "spec.template.metadata.labels"},
		"autoscaler's limits": {"AS-01", pools(func(p *mp) { p.Annotations = map[string]string{clusterv1.AutoscalerMaxSizeAnnotation: "many"} }), "metadata.annotations"},
	}
}

func refusedChecks() map[string]refusal {
	type check = clusterv1.MachineHealthCheck
	checks := func(change func(*check)) client.Object { return of(healthCheck("bad"), change) }
	const trigger = "spec.remediation.triggerIf."
	return map[string]refusal{
		"selector":        {"HC-12", checks(func(c *check) { c.Spec.Selector = noOperator() }), "spec.selector"},
		"selects all":     {"HC-12", checks(func(c *check) { c.Spec.Selector = metav1.LabelSelector{} }), "spec.selector"},
		"startup":         {"HC-12", checks(func(c *check) { c.Spec.Checks.NodeStartupTimeoutSeconds = new(int32(5)) }), "spec.checks.nodeStartupTimeoutSeconds"},
		"negative":        {"HC-12", checks(func(c *check) { c.Spec.Checks.NodeStartupTimeoutSeconds = new(int32(-60)) }), "spec.checks.nodeStartupTimeoutSeconds"},
		"range backwards": {"HC-05", checks(func(c *check) { c.Spec.Remediation.TriggerIf.UnhealthyInRange = "[5-1]" }), trigger + "unhealthyInRange"},
		"no range":        {"HC-05", checks(func(c *check) { c.Spec.Remediation.TriggerIf.UnhealthyInRange = "1..5" }), trigger + "unhealthyInRange"},
		"limit": {"HC-05", checks(func(c *check) {
			c.Spec.Remediation.TriggerIf.UnhealthyLessThanOrEqualTo = new(intstr.FromString("few"))
		}), trigger + "unhealthyLessThanOrEqualTo"},
		"conditions": {"HC-02", checks(func(c *check) {
			c.Spec.Checks.UnhealthyNodeConditions = []clusterv1.UnhealthyNodeCondition{{Type: "Ready", Status: "False", TimeoutSeconds: new(int32(-1))}}
		}), "spec.checks.unhealthyNodeConditions[0].timeoutSeconds"},
		"remediation": {"HC-08", checks(func(c *check) { c.Spec.Remediation.TemplateRef.Kind = "X" }), "spec.remediation.templateRef"},
	}
}

func refusedOthers() map[string]refusal {
	type set = addonsv1.ClusterResourceSet
	type rule = clusterv1.MachineDrainRule
	sets := func(change func(*set)) client.Object { return of(resourceSet("bad"), change) }
	rules := func(change func(*rule)) client.Object { return of(drainRule("bad"), change) }
	nothing := noOperator()
	return map[string]refusal{
		"set: selector":       {"RS-01", sets(func(s *set) { s.Spec.ClusterSelector = noOperator() }), "spec.clusterSelector"},
		"set: selects all":    {"RS-01", sets(func(s *set) { s.Spec.ClusterSelector = metav1.LabelSelector{} }), "spec.clusterSelector"},
		"set: strategy":       {"RS-04", sets(func(s *set) { s.Spec.Strategy = "Often" }), "spec.strategy"},
		"set: kind":           {"RS-01", sets(func(s *set) { s.Spec.Resources[0].Kind = "Pod" }), "spec.resources[0].kind"},
		"rule: order of Skip": {"MD-06", rules(func(r *rule) { r.Spec.Drain.Order = new(int32(1)) }), "spec.drain.order"},
		"rule: behavior":      {"MD-06", rules(func(r *rule) { r.Spec.Drain.Behavior = "Evict" }), "spec.drain.behavior"},
		"rule: pods":          {"MD-09", rules(func(r *rule) { r.Spec.Pods[0].Selector = &nothing }), "spec.pods[0].selector"},
		"rule: machines": {"MD-09", rules(func(r *rule) {
			r.Spec.Machines = []clusterv1.MachineDrainRuleMachineSelector{{Selector: &nothing}}
		}), "spec.machines[0].selector"},
		"rule: clusters": {"MD-09", rules(func(r *rule) {
			r.Spec.Machines = []clusterv1.MachineDrainRuleMachineSelector{{ClusterSelector: &nothing}}
		}), "spec.machines[0].clusterSelector"},
	}
}

// testBadInput: what no controller could act upon is refused when it is created, by the CRD or by a rule, and the field
// is named. What cannot be known then, such as a template that does not exist, is said in conditions.
func testBadInput(t *testing.T, w *world) { // MS-22, MS-23, DP-06, DP-17, MP-15, HC-05, HC-12, RS-01, RS-04, MD-06, MD-09
	for kind, list := range map[string]map[string]refusal{
		"MachineSet": refusedSets(), "MachineDeployment": refusedDeployments(), "MachinePool": refusedPools(),
		"MachineHealthCheck": refusedChecks(), "others": refusedOthers(),
	} {
		for name, r := range list {
			err := w.client.Create(t.Context(), r.object)
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), r.field) {
				t.Errorf("%s, %s (%s): want an Invalid error that names %s, got %v", kind, name, r.reason, r.field, err)
			}
		}
	}
	for _, o := range []client.Object{machineSet("good"), deployment("good"), pool("good"), healthCheck("good"), resourceSet("good"), drainRule("good")} {
		if err := w.client.Create(t.Context(), o); err != nil {
			t.Errorf("%T without a mistake: %v", o, err)
		}
	}
	for _, o := range []client.Object{machineSet("good"), deployment("good"), pool("good")} { // a change of nothing else
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec": {"replicas": -3}}`))
		if err := w.client.Patch(t.Context(), o, patch); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.replicas") {
			t.Errorf("%T is scaled to -3: %v", o, err)
		}
		scale := client.RawPatch("application/merge-patch+json", []byte(`{"spec": {"replicas": -3}}`))
		if err := w.client.SubResource("scale").Patch(t.Context(), o, scale); !apierrors.IsInvalid(err) {
			t.Errorf("%T is scaled to -3 through the subresource: %v", o, err)
		}
		many := client.RawPatch("application/merge-patch+json", []byte(`{"spec": {"replicas": 1001}}`))
		if err := w.client.Patch(t.Context(), o, many); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "maxima.replicas") {
			t.Errorf("%T is scaled to 1001: %v", o, err)
		}
		if err := w.client.SubResource("scale").Patch(t.Context(), o, many); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "maxima.replicas") {
			t.Errorf("%T is scaled to 1001 through the subresource: %v", o, err)
		}
	}
}

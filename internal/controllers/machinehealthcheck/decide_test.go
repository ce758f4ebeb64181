package machinehealthcheck

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

func intOrString(text string) *intstr.IntOrString { return ptr.To(intstr.Parse(text)) }

func lessOrEqual(v *intstr.IntOrString) clusterv1.MachineHealthCheckRemediationTriggerIf {
	return clusterv1.MachineHealthCheckRemediationTriggerIf{UnhealthyLessThanOrEqualTo: v}
}

func inRange(text string) clusterv1.MachineHealthCheckRemediationTriggerIf {
	return clusterv1.MachineHealthCheckRemediationTriggerIf{UnhealthyInRange: text}
}

// check looks at Nodes that have been NotReady for five minutes.
func check(change ...func(*clusterv1.MachineHealthCheck)) *clusterv1.MachineHealthCheck {
	c := &clusterv1.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "hc", UID: "hc-uid", Generation: 3, Labels: map[string]string{clusterv1.ClusterNameLabel: "c"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "c", UID: "c-uid"}},
	}}
	c.Spec.ClusterName = "c"
	c.Spec.Selector.MatchLabels = map[string]string{"pool": "a"}
	c.Spec.Checks.UnhealthyNodeConditions = []clusterv1.UnhealthyNodeCondition{{Type: corev1.NodeReady, Status: "False", TimeoutSeconds: ptr.To(int32(300))}}
	for _, f := range change {
		f(c)
	}
	return c
}

func limited(trigger clusterv1.MachineHealthCheckRemediationTriggerIf) func(*clusterv1.MachineHealthCheck) {
	return func(c *clusterv1.MachineHealthCheck) { c.Spec.Remediation.TriggerIf = trigger }
}

func elsewhere(c *clusterv1.MachineHealthCheck) {
	c.Spec.Remediation.TemplateRef = clusterv1.MachineHealthCheckRemediationTemplateReference{APIVersion: "r/v1", Kind: "FixTemplate", Name: "fix"}
}

func newSnapshot(c *clusterv1.MachineHealthCheck, targets ...target) snapshot {
	return snapshot{Now: now, Check: c, Cluster: cluster(), Targets: targets}
}

func template() contract.RemediationTemplateView {
	return contract.RemediationTemplate(contract.Object{Contract: contract.V1Beta2, Unstructured: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "r/v1", "kind": "FixTemplate", "metadata": map[string]any{"name": "fix", "namespace": "ns"},
		"spec": map[string]any{"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"a": "1"}}, "spec": map[string]any{"how": "reboot"}}},
	}}})
}

func request(name string) *contract.Object {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("r/v1")
	u.SetKind("Fix")
	u.SetNamespace("ns")
	u.SetName(name)
	return &contract.Object{Unstructured: u, Contract: contract.V1Beta2}
}

const (
	health = clusterv1.MachineHealthCheckSucceededCondition
	owner  = clusterv1.MachineOwnerRemediatedCondition
	extern = clusterv1.MachineExternallyRemediatedCondition
)

func text(actions []reconciler.Action) []string {
	var out []string
	for _, a := range actions {
		out = append(out, a.String())
	}
	return out
}

const notReady = "Health check failed: condition Ready of the Node has been False for more than 5m0s"

func marked(t target, conditions ...func(*clusterv1.Machine)) target {
	for _, f := range conditions {
		f(t.Machine)
	}
	for _, c := range t.Machine.Status.Conditions {
		t.Claims = append(t.Claims, c.Type)
	}
	return t
}

func says(conditionType, status, reason, message string) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) {
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: conditionType, Status: metav1.ConditionStatus(status), Reason: reason, Message: message})
	}
}

func TestDecide(t *testing.T) { // HC-05, HC-06, HC-08, HC-10, HC-11, HC-12
	wait := says(owner, "False", "WaitingForRemediation", "Waiting for remediation")
	bad, good := says(health, "False", "UnhealthyNode", notReady), says(health, "True", "HealthCheckSucceeded", "")
	pending := target{Machine: machine("m"), Node: node("m", "False", time.Minute), NodeRead: true}
	with := func(s snapshot, change func(*snapshot)) snapshot { change(&s); return s }
	toOwner := "mark Machine m unhealthy and to be remediated by its owner: " + notReady
	for name, tc := range map[string]struct {
		reason string
		s      snapshot
		want   []string
		waits  []string
		next   time.Duration
	}{
		"no cluster":   {"it is waited for", with(newSnapshot(check()), func(s *snapshot) { s.Cluster = nil }), nil, []string{"ClusterNotFound"}, 0},
		"join":         {"owner and label in one write (HC-12)", newSnapshot(check(func(c *clusterv1.MachineHealthCheck) { c.Labels = nil })), []string{"join Cluster c"}, nil, 0},
		"join again":   {"an owner reference that was lost comes back (OR-01)", newSnapshot(check(func(c *clusterv1.MachineHealthCheck) { c.OwnerReferences = nil })), []string{"join Cluster c"}, nil, 0},
		"disconnected": {"a lost connection alone marks nothing (HC-11)", with(newSnapshot(check(), sick("m"), target{Machine: machine("n")}), func(s *snapshot) { s.Disconnected = "away" }), nil, []string{"ClusterNotConnected"}, 0},
		"healthy":      {"said once", newSnapshot(check(), healthy("m")), []string{"mark Machine m healthy: no check fails"}, nil, 0},
		"said":         {"and not again", newSnapshot(check(), marked(healthy("m"), good)), nil, nil, 0},
		"unhealthy":    {"marked, and handed to its owner (HC-06)", newSnapshot(check(), sick("m")), []string{toOwner}, nil, 0},
		"of a pool":    {"MP-16: handed to the infrastructure of its pool, by the same conditions", newSnapshot(check(), sick("m", ofPool)), []string{toOwner}, nil, 0},
		"of a foreign pool": {"MP-16: the message names the infrastructure that has to act", newSnapshot(check(), func() target {
			t := sick("m", ofPool)
			t.Remediator = "FooMachinePool p"
			return t
		}()), []string{toOwner}, nil, 0},
		"late, then provisioned": {"its Node has the time to start from then on, and it is not replaced", newSnapshot(check(), target{NodeRead: true, Machine: machine("m", noNode,
			says(health, "False", "NodeStartupTimeout", "late"), wait, has(clusterv1.MachineInfrastructureReadyCondition, "True", "A", time.Minute)), Claims: []string{health, owner}}),
			[]string{"give up conditions of Machine m that are not this health check's, or not the case, any more"}, nil, 9 * time.Minute},
		"handed over": {"once", newSnapshot(check(), marked(sick("m"), bad, wait)), nil, nil, 0},
		"taken up":    {"what the owner says of it is the owner's; our share is given up", newSnapshot(check(), marked(sick("m"), bad, says(owner, "False", "MachineDeleting", ""))), []string{"mark Machine m unhealthy: " + notReady}, nil, 0},
		"taken up, given up": {"and then left alone", newSnapshot(check(), func() target {
			t := marked(sick("m"), bad, says(owner, "False", "MachineDeleting", ""))
			t.Claims = []string{health}
			return t
		}()), nil, nil, 0},
		"remediated before": {"the owner said it was done, and it is sick again", newSnapshot(check(), marked(sick("m"), bad, says(owner, "True", "Done", ""))), []string{toOwner}, nil, 0},
		"recovered":         {"the owner need not act any more", newSnapshot(check(), marked(healthy("m"), bad, wait)), []string{"mark Machine m healthy: no check fails"}, nil, 0},
		"under way":         {"looked at again when the timeout is over (HC-10); nothing is said until then", newSnapshot(check(), pending), nil, nil, 4 * time.Minute},
		"under way again":   {"what was said stays", newSnapshot(check(), marked(target{Machine: machine("m"), Node: node("m", "False", time.Minute), NodeRead: true}, bad, wait)), nil, nil, 4 * time.Minute},
		"several":           {"the first that may fail decides the time", newSnapshot(check(), pending, starting("n")), nil, nil, 4 * time.Minute},
		"deleting":          {"what goes is not marked", newSnapshot(check(), sick("m", deleting)), nil, nil, 0},
		"too many":          {"the owner is not asked (HC-05)", newSnapshot(check(limited(lessOrEqual(intOrString("1")))), sick("m"), sick("n")), []string{"mark Machine m unhealthy: " + notReady, "mark Machine n unhealthy: " + notReady}, nil, 0},
		"too many, starting": {"a Machine that has not started is not healthy", newSnapshot(check(limited(lessOrEqual(intOrString("50%")))), sick("m"), starting("n")),
			[]string{"mark Machine m unhealthy: " + notReady}, nil, 9 * time.Minute},
		"few enough":    {"of three one", newSnapshot(check(limited(lessOrEqual(intOrString("40%")))), sick("m"), marked(healthy("n"), good), marked(healthy("o"), good)), []string{toOwner}, nil, 0},
		"bad limit":     {"what cannot be read allows nothing", newSnapshot(check(limited(inRange("[5-1]"))), sick("m")), []string{"mark Machine m unhealthy: " + notReady}, nil, 0},
		"asked already": {"what was asked for stays when there are too many now", newSnapshot(check(limited(lessOrEqual(intOrString("0")))), marked(sick("m"), bad, wait)), nil, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := decide(tc.s)
			if diff := cmp.Diff(tc.want, text(p.Actions)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			var waits []string
			for _, w := range p.Waits {
				waits = append(waits, w.Reason)
			}
			if diff := cmp.Diff(tc.waits, waits); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if p.Recheck != tc.next {
				t.Errorf("%s: next look in %s, want %s", tc.reason, p.Recheck, tc.next)
			}
		})
	}
}

func TestExternalRemediation(t *testing.T) { // HC-08
	bad := says(health, "False", "UnhealthyNode", notReady)
	waiting := says(extern, "False", "WaitingForRemediation", "Waiting for remediation")
	asked := func(t target) target { t.Request = request("m"); return t }
	for name, tc := range map[string]struct {
		reason   string
		target   target
		template contract.RemediationTemplateView
		want     []string
		external condition.Result
	}{
		"asked for": {"a request is made, the owner is not asked", sick("m"), template(),
			[]string{"request external remediation of Machine m: " + notReady}, condition.False("WaitingForRemediation", "Waiting for remediation")},
		"made":              {"once", asked(marked(sick("m"), bad, waiting)), template(), nil, condition.Result{}},
		"made, not said":    {"a crash in between", asked(marked(sick("m"), bad)), template(), []string{"mark Machine m unhealthy: " + notReady}, condition.False("WaitingForRemediation", "Waiting for remediation")},
		"no template":       {"said on the Machine", sick("m"), contract.RemediationTemplate(contract.Object{}), []string{"mark Machine m unhealthy: " + notReady}, condition.False("RemediationTemplateNotFound", "FixTemplate fix does not exist; create it, or refer to another template")},
		"kind is missing":   {"with what to do", sick("m"), contract.RemediationTemplate(contract.Object{Problem: "install it"}), []string{"mark Machine m unhealthy: " + notReady}, condition.False("RemediationTemplateNotFound", "install it")},
		"failed before":     {"tried again", marked(sick("m"), bad, says(extern, "False", "RemediationRequestCreationFailed", "no")), template(), []string{"request external remediation of Machine m: " + notReady}, condition.False("WaitingForRemediation", "Waiting for remediation")},
		"taken up":          {"what the remediation controller says is its own", asked(marked(sick("m"), bad, says(extern, "False", "Rebooting", ""))), template(), []string{"mark Machine m unhealthy: " + notReady}, condition.Result{}},
		"healthy again":     {"the request goes, the condition too", asked(marked(healthy("m"), bad, waiting)), template(), []string{"mark Machine m healthy: no check fails", "delete Fix m: the Machine is healthy again"}, condition.Result{}},
		"deleted by others": {"asked for again while it is unhealthy", marked(sick("m"), bad, waiting), template(), []string{"request external remediation of Machine m: " + notReady}, condition.False("WaitingForRemediation", "Waiting for remediation")},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSnapshot(check(elsewhere), tc.target)
			s.Template = tc.template
			p := decide(s)
			if diff := cmp.Diff(tc.want, text(p.Actions)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			isRejected := tc.external.Reason == "RemediationTemplateNotFound"
			if isRejected != (len(p.Waits) == 1) || isRejected && (p.Waits[0].Message != tc.external.Message || p.Waits[0].Until != reconciler.UntilUser) {
				t.Errorf("a template that cannot be used is a wait: %+v", p.Waits)
			}
			for _, a := range p.Actions {
				var w machineConditions
				switch a := a.(type) {
				case mark:
					w = a.Wants
				case requestRemediation:
					w = a.Wants
				default:
					continue
				}
				if w.External != tc.external || w.Owner != condition.Absent() {
					t.Errorf("%s: external %+v, owner %+v", tc.reason, w.External, w.Owner)
				}
			}
		})
	}
}

func TestNewRequest(t *testing.T) { // HC-08
	s := newSnapshot(check(elsewhere), sick("m"))
	s.Template = template()
	want := map[string]any{
		"apiVersion": "r/v1", "kind": "Fix", "spec": map[string]any{"how": "reboot"},
		"metadata": map[string]any{
			"name": "m", "namespace": "ns", "labels": map[string]any{"a": "1", clusterv1.ClusterNameLabel: "c"},
			"annotations":     map[string]any{clusterv1.TemplateClonedFromNameAnnotation: "fix", clusterv1.TemplateClonedFromGroupKindAnnotation: "FixTemplate.r"},
			"ownerReferences": []any{map[string]any{"apiVersion": clusterv1.GroupVersion.String(), "kind": "Machine", "name": "m", "uid": "m-uid"}},
		},
	}
	if diff := cmp.Diff(want, newRequest(s, s.Targets[0].Machine).Object); diff != "" {
		t.Errorf("the request is the Machine's, made from the template (-want +got):\n%s", diff)
	}
}

// Several health checks on one Machine say the same on it, so that they never write against each other.
func TestSeveralHealthChecks(t *testing.T) { // HC-06
	a := check(func(c *clusterv1.MachineHealthCheck) { c.Name = "a" })
	b := check(func(c *clusterv1.MachineHealthCheck) {
		c.Name = "b"
		c.Spec.Checks.UnhealthyNodeConditions = nil
	})
	target := sick("m")
	first := newSnapshot(a, target)
	first.Others = []clusterv1.MachineHealthCheck{*b}
	p := decide(first)
	want := "mark Machine m unhealthy and to be remediated by its owner: " + notReady
	if diff := cmp.Diff([]string{want}, text(p.Actions)); diff != "" {
		t.Fatalf("the one that finds it requests remediation (-want +got):\n%s", diff)
	}
	w := p.Actions[0].(mark).Wants
	target = marked(sick("m"), says(health, string(w.Health.Status), w.Health.Reason, w.Health.Message), says(owner, string(w.Owner.Status), w.Owner.Reason, w.Owner.Message))
	second := newSnapshot(b, target)
	second.Others = []clusterv1.MachineHealthCheck{*a}
	if p := decide(second); len(p.Actions) > 0 {
		t.Errorf("the other one agrees: %v", text(p.Actions))
	}
	if r := report(second, reconciler.Plan{}, reconciler.Outcome{}); *r.Status.(clusterv1.MachineHealthCheckStatus).CurrentHealthy != 1 {
		t.Error("but counts by its own checks")
	}
	third := newSnapshot(b, healthy("m"))
	third.Others = []clusterv1.MachineHealthCheck{*a, *check(func(c *clusterv1.MachineHealthCheck) { c.Name = "z"; c.Spec.Selector.MatchLabels["pool"] = "z" })}
	if diff := cmp.Diff([]string{"mark Machine m healthy: no check fails"}, text(decide(third).Actions)); diff != "" {
		t.Errorf("healthy for all (-want +got):\n%s", diff)
	}
}

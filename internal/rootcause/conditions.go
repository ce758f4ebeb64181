package rootcause

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/operate/describe"
)

// conditionClass is how a condition type contributes to the state of its object.
type conditionClass int

const (
	classOwn      conditionClass = iota // reports the state of the object itself
	classMirror                         // repeats or aggregates conditions of other objects
	classSummary                        // sums up other conditions of the object
	classProgress                       // reports work in progress
)

// classes has the classes of condition types. Types that are not listed are classOwn.
var classes = map[string]conditionClass{
	"Available": classSummary,
	"Ready":     classSummary,

	"BootstrapConfigReady":          classMirror,
	"BootstrapReady":                classMirror,
	"ControlPlaneAvailable":         classMirror,
	"ControlPlaneComponentsHealthy": classMirror,
	"ControlPlaneInitialized":       classMirror,
	"ControlPlaneMachinesReady":     classMirror,
	"ControlPlaneReady":             classMirror,
	"EtcdClusterHealthy":            classMirror,
	"HostReachable":                 classMirror,
	"InfrastructureReady":           classMirror,
	"MachinesReady":                 classMirror,
	"WorkerMachinesReady":           classMirror,
	"WorkersAvailable":              classMirror,

	"ControlPlaneMachinesUpToDate": classProgress,
	"MachinesUpToDate":             classProgress,
	"Progressing":                  classProgress,
	"Reconciling":                  classProgress,
	"RollingOut":                   classProgress,
	"ScalingDown":                  classProgress,
	"ScalingUp":                    classProgress,
	"UpToDate":                     classProgress,
	"Updating":                     classProgress,
	"WorkerMachinesUpToDate":       classProgress,
}

// classOf returns the class of a condition without its expected status. After the connection to a workload cluster is lost, its
// conditions repeat the state of the connection, which the Cluster reports. After an internal error, its owner reports the error
// instead of what it mirrors.
func classOf(conditionType, reason string) conditionClass {
	class := classes[conditionType]
	switch {
	case reason == clusterv1.ConnectionDownReason && class != classProgress:
		return classMirror
	case reason == clusterv1.InternalErrorReason && class == classMirror:
		return classOwn
	}
	return class
}

// handledTypes lists the condition types that are considered elsewhere.
func handledTypes() []string {
	return []string{clusterv1.PausedCondition, clusterv1.DeletingCondition}
}

// isExpected reports whether a condition has the status it should have.
func (o object) isExpected(c describe.Condition) bool {
	return describe.HasExpectedStatus(c, o.negative) || isNormal(c.Reason)
}

// negativeGates returns the condition types that the gates of an object list with negative polarity. newObjectAt calls
// it.
func negativeGates(u *unstructured.Unstructured) (types []string) {
	for _, field := range []string{"availabilityGates", "readinessGates"} {
		value, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", field)
		gates, _ := value.([]any)
		for _, gate := range gates[:min(len(gates), maxConditions)] {
			fields, _ := gate.(map[string]any)
			if fields["polarity"] == string(clusterv1.NegativePolarityCondition) {
				conditionType, _ := fields["conditionType"].(string)
				types = append(types, conditionType)
			}
		}
	}
	return types
}

// conditionProblems returns the conditions that do not have the status they should have. object.problems calls it.
func (o object) conditionProblems(now time.Time) (out []problem) {
	for _, c := range o.conditions {
		p := problem{Link: Link{Object: o.ref, Type: c.Type, Reason: c.Reason, Message: clip(c.Message), Since: c.LastTransitionTime.Time}}
		switch {
		case slices.Contains(handledTypes(), c.Type):
			continue
		case o.isExpected(c):
			if w, found := warningOf(c); found {
				p.weight, p.fixed = weightWarning, Remedy{Text: w.text, Automatic: true}
				out = append(out, p)
			}
			continue
		}
		class := classOf(c.Type, c.Reason)
		p.isMirror = classes[c.Type] == classMirror || class == classMirror || class == classSummary
		p.on = o.conditionTarget(c)
		if r, _ := findRemedy(p.Link, now); r.isConclusive && len(p.on) == 0 && class != classSummary && !o.isDeleting() {
			p.isConclusive = true
		}
		p.isSevere = c.Status == metav1.ConditionFalse && c.Severity == string(clusterv1.ConditionSeverityError) && classes[c.Type] != classMirror
		p.weight = o.conditionWeight(c, p.Link, now)
		out = append(out, p)
	}
	demoteSummaries(out, now)
	return out
}

// warningOf returns the remedy for a warning in a condition that has its expected status. Summaries repeat other conditions.
func warningOf(c describe.Condition) (remedy, bool) {
	message := strings.ToLower(clip(c.Message))
	if message == "" || classes[c.Type] != classOwn {
		return remedy{}, false
	}
	i := slices.IndexFunc(warnings, func(p phrase) bool { return p.matches(message) })
	if i < 0 {
		return remedy{}, false
	}
	return warnings[i].remedy, true
}

// demoteSummaries reduces the weight of summaries that repeat the message or have the remedy of another condition: the other
// one is more precise.
func demoteSummaries(problems []problem, now time.Time) {
	var texts, messages []string
	for _, p := range problems {
		if classOf(p.Type, p.Reason) == classSummary {
			continue
		}
		if r, known := findRemedy(p.Link, now); known {
			texts = append(texts, r.text)
			if (!r.automatic || p.isLostConnection()) && p.Message != "" {
				messages = append(messages, p.Message)
			}
		}
	}
	for i := range problems {
		p := &problems[i]
		r, known := findRemedy(p.Link, now)
		repeats := slices.ContainsFunc(messages, func(m string) bool { return strings.Contains(p.Message, m) })
		if classOf(p.Type, p.Reason) == classSummary && (repeats || known && slices.Contains(texts, r.text)) {
			p.weight = max(p.weight, weightSummary)
		}
	}
}

// conditionWeight returns the weight of a condition without its expected status. Conditions other than Deleting do not
// explain the state of an object that is being deleted.
func (o object) conditionWeight(c describe.Condition, l Link, now time.Time) weight {
	class := classOf(c.Type, c.Reason)
	r, known := findRemedy(l, now)
	switch {
	case class == classProgress, o.isDeleting():
		return weightProgress
	case r.isConsequence:
		return weightUnknown
	case c.Type == clusterv1.MachineExternallyRemediatedCondition && known && !r.automatic: // the replacement ends other problems
		return weightUser
	case class != classMirror && c.Severity == string(clusterv1.ConditionSeverityInfo):
		return weightProgress
	case class == classOwn && c.Severity == string(clusterv1.ConditionSeverityError):
		return weightUserTask
	case class == classSummary && !(known && !r.automatic && r.isSpecific):
		return weightSummary
	case class == classMirror && c.Status == metav1.ConditionUnknown, class == classOwn && c.Status == metav1.ConditionUnknown && (!known || r.automatic):
		return weightUnknown
	case class != classMirror && known && !r.automatic:
		return weightUserTask
	}
	return weightCondition
}

// conditionTarget returns the object whose state a mirror condition repeats, or that may explain the state of a Node.
func (o object) conditionTarget(c describe.Condition) []Ref {
	if cluster := clusterRef(o.ref.Namespace, o.cluster()); c.Reason == clusterv1.ConnectionDownReason && cluster.Name != "" && cluster != o.ref {
		return []Ref{cluster}
	}
	if host := o.sshHost(); c.Type == infrav1.HostReachableCondition || c.Type == infrav1.HostClaimedCondition {
		if host.Name == "" || host == o.ref {
			return nil
		}
		return []Ref{host}
	}
	path := map[string][]string{
		"InfrastructureReady":     {"spec", "infrastructureRef"},
		"NodeHealthy":             {"spec", "infrastructureRef"},
		"NodeReady":               {"spec", "infrastructureRef"},
		"BootstrapConfigReady":    {"spec", "bootstrap", "configRef"},
		"BootstrapReady":          {"spec", "bootstrap", "configRef"},
		"ControlPlaneAvailable":   {"spec", "controlPlaneRef"},
		"ControlPlaneInitialized": {"spec", "controlPlaneRef"},
		"ControlPlaneReady":       {"spec", "controlPlaneRef"},
	}[c.Type]
	if path == nil {
		return nil
	}
	if target, ok := o.referenceAt(path...); ok {
		return []Ref{target}
	}
	if target, ok := o.referenceAt(append([]string{"spec", "template"}, path...)...); ok {
		return []Ref{target}
	}
	return nil
}

// contractProblem reports a provider object without conditions that has not set the field by which its contract reports
// readiness. A value of the wrong type is not reported here, because the owner reports it. object.problems calls it.
func (o object) contractProblem(now time.Time) (problem, bool) {
	domain, _, _ := strings.Cut(o.ref.Group, ".")
	field := map[string]string{"infrastructure": "provisioned", "bootstrap": "dataSecretCreated", "controlplane": "controlPlaneInitialized"}[domain]
	if field == "" || !o.expectsStatus() || len(o.conditions) > 0 {
		return problem{}, false
	}
	reached, _, invalid := unstructured.NestedBool(o.content.Object, "status", "initialization", field)
	ready, _, _ := unstructured.NestedBool(o.content.Object, "status", "ready")
	initialized, _, _ := unstructured.NestedBool(o.content.Object, "status", "initialized")
	if reached || ready || initialized || invalid != nil {
		return problem{}, false
	}
	p := problem{
		weight: weightCondition,
		Link:   Link{Object: o.ref, Message: "Its provider has not reported status.initialization." + field + " yet", Since: o.content.GetCreationTimestamp().Time},
		fixed:  Remedy{Text: progressText, Automatic: true},
	}
	if now.Sub(p.Since) > stuckAfter {
		p.fixed = Remedy{Text: "Check the provider of {kind} (group {group}): it has to set status.initialization." + field + "; its controller logs why it does not", Command: describeText}
	}
	return p, true
}

// isStatusless reports whether no controller writes a status of the kind.
func isStatusless(kind string) bool {
	return strings.HasSuffix(kind, "Template") || slices.Contains([]string{"ClusterResourceSetBinding", "IPAddress", "MachineDrainRule", "Secret", "ConfigMap"}, kind)
}

// expectsStatus reports whether a controller of Cluster API or of a provider is expected to write a status: for the kinds of
// the core, and for kinds of providers that belong to a Cluster.
func (o object) expectsStatus() bool {
	if isStatusless(o.ref.Kind) {
		return false
	}
	switch domain, _, _ := strings.Cut(o.ref.Group, "."); {
	case slices.Contains([]string{clusterv1.GroupVersion.Group, addonsv1.GroupVersion.Group, runtimev1.GroupVersion.Group}, o.ref.Group):
		return true
	case !slices.Contains([]string{"infrastructure", "bootstrap", "controlplane", "ipam"}, domain): // not a group of a provider
		return false
	case o.content.GetLabels()[clusterv1.ClusterNameLabel] != "":
		return true
	}
	return slices.ContainsFunc(o.content.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
		group, _, _ := strings.Cut(r.APIVersion, "/")
		return strings.HasSuffix(group, "cluster.x-k8s.io")
	})
}

// abandonAfter is the time after which an object that no controller has acted on is reported as such.
const abandonAfter = 30 * time.Second

// abandonedProblem reports an object that no controller has acted on since it was created: it has no status, no finalizer,
// and no field that was written with the status subresource.
func (o object) abandonedProblem(now time.Time) (problem, bool) {
	value, _, _ := unstructured.NestedFieldNoCopy(o.content.Object, "status")
	status, _ := value.(map[string]any)
	written := slices.ContainsFunc(o.content.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Subresource == "status" })
	own, _ := o.finalizers()
	if len(status) > 0 || written || len(own) > 0 || o.isDeleting() || !o.expectsStatus() {
		return problem{}, false
	}
	created := o.content.GetCreationTimestamp().Time
	p := problem{weight: weightAbandoned, Link: Link{Object: o.ref, Reason: reasonNoController, Since: created,
		Message: "No controller for kind " + o.ref.Kind + " is working: none has written to this object since it was created"}}
	p.fixed = Remedy{
		Text:    "Install or start the provider of kind {kind} (group {group}), and check that it watches namespace {namespace}",
		Command: "slipway kubectl get pods --all-namespaces -l cluster.x-k8s.io/provider",
	}
	if now.Sub(created) < abandonAfter {
		p.weight, p.Message = weightProgress, "Created; its controller has not reconciled it yet"
		p.fixed = Remedy{Text: "The controller of {kind} reconciles it next", Automatic: true}
	}
	return p, true
}

// reasonNoController is the reason of a link whose object has no working controller.
const reasonNoController = "NoController"

package drain

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Rule is a MachineDrainRule that applies to the Machine of the drained Node. [RulesFor] selects the rules, and
// [ReadView] stores them in the [View].
type Rule struct {
	Name string
	// Behavior is the drain behavior of the selected Pods; Order is used only for Drain.
	Behavior clusterv1.MachineDrainRuleDrainBehavior
	Order    int32
	// pods are alternative selectors. An empty list selects all Pods.
	pods []podSelector
}

// podSelector selects Pods by their labels and the labels of their Namespace.
type podSelector struct{ pod, namespace labels.Selector }

// RulesFor returns the MachineDrainRules that apply to the Machine of the Cluster, sorted by name, for a [View].
// Cluster API defines that the first rule by name applies to a Pod. The rules must be from the Machine's namespace. An
// invalid selector is an error, because otherwise Pods that the rule protects could be evicted. The Machine controller
// and `slipway hosts reboot` call it before [ReadView].
func RulesFor(rules []clusterv1.MachineDrainRule, machine *clusterv1.Machine, cluster *clusterv1.Cluster) ([]Rule, error) {
	var out []Rule
	for _, r := range rules {
		applies, err := concerns(r, machine, cluster)
		if err == nil && applies {
			var rule Rule
			rule, err = compile(r)
			out = append(out, rule)
		}
		if err != nil {
			return nil, fault.New(fault.Invalid, "InvalidDrainRule",
				"MachineDrainRule %s has a selector that cannot be read: correct it or delete the rule", r.Name).From(err)
		}
	}
	slices.SortFunc(out, func(a, b Rule) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// concerns reports whether one of the rule's alternatives selects both the Machine and the Cluster.
func concerns(r clusterv1.MachineDrainRule, machine *clusterv1.Machine, cluster *clusterv1.Cluster) (bool, error) {
	if len(r.Spec.Machines) == 0 {
		return true, nil
	}
	for _, m := range r.Spec.Machines {
		own, err := selector(m.Selector)
		if err != nil {
			return false, err
		}
		of, err := selector(m.ClusterSelector)
		if err != nil {
			return false, err
		}
		if own.Matches(labels.Set(machine.Labels)) && of.Matches(labels.Set(cluster.Labels)) {
			return true, nil
		}
	}
	return false, nil
}

func compile(r clusterv1.MachineDrainRule) (Rule, error) {
	out := Rule{Name: r.Name, Behavior: r.Spec.Drain.Behavior}
	if r.Spec.Drain.Order != nil && out.Behavior == clusterv1.MachineDrainRuleDrainBehaviorDrain {
		out.Order = *r.Spec.Drain.Order
	}
	for _, p := range r.Spec.Pods {
		pod, err := selector(p.Selector)
		if err != nil {
			return out, err
		}
		namespace, err := selector(p.NamespaceSelector)
		if err != nil {
			return out, err
		}
		out.pods = append(out.pods, podSelector{pod: pod, namespace: namespace})
	}
	return out, nil
}

// selector converts a label selector. A nil selector selects everything.
func selector(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}

// selects reports whether the rule applies to the Pod. The argument namespaces contains the labels of the workload
// cluster's Namespaces. [Decide] calls it for each Pod.
func (r Rule) selects(pod *corev1.Pod, namespaces map[string]labels.Set) bool {
	return len(r.pods) == 0 || slices.ContainsFunc(r.pods, func(s podSelector) bool {
		return s.pod.Matches(labels.Set(pod.Labels)) && s.namespace.Matches(namespaces[pod.Namespace])
	})
}

// asksForNamespaces reports whether any rule depends on labels of Namespaces. [ReadView] lists Namespaces only in this
// case.
func asksForNamespaces(rules []Rule) bool {
	return slices.ContainsFunc(rules, func(r Rule) bool {
		return slices.ContainsFunc(r.pods, func(s podSelector) bool { return !s.namespace.Empty() })
	})
}

// byName orders Pods by namespace and name. The lists of a [Plan] have this order.
func byName(a, b *corev1.Pod) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

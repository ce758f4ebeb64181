package drain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// shown is the maximum number of objects that a line names; the rest are counted.
const shown = 5

// refusedText begins the lines about Pods whose eviction was rejected, leftText the line about Pods that were not evicted
// yet. [DescribeBefore] finds these lines by refusedText in the condition of the previous reconciliation.
const refusedText, leftText = "Pods that cannot be evicted, ", "Pods still to be evicted"

// Describe returns a message for users with the Pods that the drain waits for, one line for each reason. The Machine
// controller writes it to the Deleting condition, and `slipway hosts reboot` prints it. The text must be stable while
// nothing changes, because each change of it is a write.
func Describe(p Plan, r Results) []string {
	var lines []string
	add := func(what string, pods []types.NamespacedName) {
		if len(pods) > 0 {
			lines = append(lines, "* "+what+": "+names(pods))
		}
	}
	add("Terminating Pods", slices.Concat(p.Terminating, r.Accepted))
	refused := map[string][]types.NamespacedName{}
	for _, f := range r.Refused {
		refused[f.Message] = append(refused[f.Message], f.Pod)
	}
	for _, message := range slices.Sorted(maps.Keys(refused)) {
		add(refusedText+message, refused[message])
	}
	add("Pods to complete by themselves", p.Awaited)
	add(leftText, r.Left)
	add("Pods to be evicted after Pods of a lower order", p.Later)
	add("Pods to complete by themselves after Pods of a lower order", p.AwaitedLater)
	return lines
}

// DescribeBefore returns the message before a reconciliation evicts Pods. The reasons why evictions were rejected are known
// only from the previous message: its lines are repeated while one of their Pods is still to be evicted. The Machine
// controller calls it for the wait of a drain.
func DescribeBefore(p Plan, previous string) []string {
	var refused []string
	for line := range strings.SplitSeq(previous, "\n") {
		named := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == ',' })
		if strings.HasPrefix(line, "* "+refusedText) && slices.ContainsFunc(p.Evict, func(t Target) bool { return slices.Contains(named, t.Pod.String()) }) {
			refused = append(refused, line)
		}
	}
	if len(refused) == 0 {
		return Describe(p, Results{Left: p.toEvict()})
	}
	lines, after := Describe(p, Results{}), 0
	if len(p.Terminating) > 0 {
		after = 1
	}
	return slices.Insert(lines, after, refused...)
}

// toEvict returns the Pods that the plan evicts.
func (p Plan) toEvict() (pods []types.NamespacedName) {
	for _, t := range p.Evict {
		pods = append(pods, t.Pod)
	}
	return pods
}

// Delays returns short reasons why a drain takes long, for the Ready condition of the Machine.
func Delays(p Plan, r Results) []string {
	var out []string
	add := func(what string, is bool) {
		if is {
			out = append(out, what)
		}
	}
	has := func(w RefusalReason) bool {
		return slices.ContainsFunc(r.Refused, func(f Refusal) bool { return f.Reason == w })
	}
	add("PodDisruptionBudgets", has(budgeted))
	add("Pods that do not terminate", len(p.Terminating) > 0 || has(terminating))
	add("evictions that fail", has(failed))
	add("Pods that do not complete", len(p.Awaited)+len(p.AwaitedLater) > 0)
	return out
}

func names(pods []types.NamespacedName) string {
	texts := make([]string, 0, len(pods))
	for _, p := range pods {
		texts = append(texts, p.String())
	}
	slices.Sort(texts)
	return join("", texts)
}

// join lists as many texts as shown allows and counts the rest.
func join(before string, texts []string) string {
	if more := len(texts) - shown; more > 0 {
		return fmt.Sprintf("%s%s and %d more", before, strings.Join(texts[:shown], ", "), more)
	}
	return before + strings.Join(texts, ", ")
}

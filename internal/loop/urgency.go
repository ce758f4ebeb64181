package loop

import (
	"reflect"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// urgency says how long a change of a status may be held back.
type urgency int

const (
	// calmly: it only reports.
	calmly urgency = iota
	// beginning: nothing is written yet of what begins.
	beginning
	// explaining: it says another reason than what is written.
	explaining
	// awaitedNow: something waits for it.
	awaitedNow
)

// calm are the fields of a status that only report, in every kind.
func calm() []string {
	return []string{
		"conditions", "deprecated", "phase", "observedGeneration", "lastUpdated", "versions", "nodeInfo", "nodeRefs", "selector",
		"controlPlane", "workers", "externalManagedControlPlane", "process", "instances", "nodeVersion", "addresses", "containerID", "failureDomain",
	}
}

// counts are the numbers of replicas of those that others scale by.
func counts() []string {
	return []string{"replicas", "readyReplicas", "availableReplicas", "upToDateReplicas"}
}

// awaited are the conditions whose status others wait for.
func awaited() []string {
	return []string{clusterv1.ReadyCondition, clusterv1.AvailableCondition, clusterv1.PausedCondition}
}

// expected are the conditions that are True from the beginning if nothing is wrong: only that they turn is awaited.
func expected() []string { return []string{clusterv1.MachineUpToDateCondition} }

// begins reports whether an object is new, or newly deleted: nothing of that is in its status.
func begins(have map[string]any, deleting bool) bool {
	return len(have) == 0 || deleting && statusOf(have, clusterv1.DeletingCondition) != "True"
}

// urgent reports whether somebody waits for a change of a status: for a field that does more than report, for
// one of the awaited conditions, or for the last of the replicas. Also lists fields that only report in this kind.
func urgent(have, want map[string]any, also []string) bool {
	quiet := slices.Concat(calm(), counts(), also)
	for field, value := range want {
		if !slices.Contains(quiet, field) && !reflect.DeepEqual(have[field], value) {
			return true
		}
	}
	for field := range have {
		if _, ok := want[field]; !ok && !slices.Contains(quiet, field) {
			return true
		}
	}
	return flips(have, want) || complete(have, want)
}

// flips reports whether an awaited condition becomes True, or ceases to be; one that is expected, after it was said once.
func flips(have, want map[string]any) bool {
	turned := func(t string) bool {
		after := statusOf(want, t)
		return after != "" && (statusOf(have, t) == "True") != (after == "True")
	}
	said := func(t string) bool { return statusOf(have, t) != "" }
	return slices.ContainsFunc(awaited(), turned) ||
		slices.ContainsFunc(expected(), func(t string) bool { return said(t) && turned(t) })
}

// complete reports whether the last of the replicas became available, or the last of those too many went.
func complete(have, want map[string]any) bool {
	available, changed := want["availableReplicas"], !reflect.DeepEqual(want["availableReplicas"], have["availableReplicas"])
	none := available == nil || len(have) == 0 && reflect.DeepEqual(available, 0.0)
	return changed && !none && reflect.DeepEqual(available, want["replicas"])
}

// explains reports whether a condition gives another reason than before, or Ready or Available, which say what is missing,
// another message.
func explains(have, want map[string]any) bool {
	list, _ := want["conditions"].([]any)
	return slices.ContainsFunc(list, func(item any) bool {
		after, _ := item.(map[string]any)
		before := conditionOf(have, after["type"])
		summary := after["type"] == clusterv1.ReadyCondition || after["type"] == clusterv1.AvailableCondition
		return before != nil && (before["reason"] != after["reason"] ||
			summary && after["status"] != "True" && before["message"] != after["message"])
	})
}

func statusOf(status map[string]any, conditionType string) string {
	s, _ := conditionOf(status, conditionType)["status"].(string)
	return s
}

// conditionOf is the condition of a type; nil: there is none.
func conditionOf(status map[string]any, conditionType any) map[string]any {
	list, _ := status["conditions"].([]any)
	for _, item := range list {
		if c, ok := item.(map[string]any); ok && c["type"] == conditionType {
			return c
		}
	}
	return nil
}

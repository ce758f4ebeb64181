package pacing

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Every field of the list is a field of the status of its kind, and every kind is listed once.
func TestUrgentFieldsExist(t *testing.T) { // FG-03
	kinds := map[reflect.Type]bool{}
	for _, u := range urgentChanges() {
		kind := reflect.TypeOf(u.Kind).Elem()
		if kinds[kind] {
			t.Errorf("%s is listed twice", kind)
		}
		kinds[kind] = true
		status, ok := kind.FieldByName("Status")
		if !ok {
			t.Fatalf("%s has no status", kind)
		}
		var fields []string
		for i := range status.Type.NumField() {
			name, _, _ := strings.Cut(status.Type.Field(i).Tag.Get("json"), ",")
			fields = append(fields, name)
		}
		listed := slices.Concat(u.Fields, u.Replaced)
		if u.Replicas {
			listed = append(listed, "replicas", "availableReplicas")
		}
		if len(u.Conditions)+len(u.Reported) > 0 {
			listed = append(listed, "conditions")
		}
		for _, f := range listed {
			if f == "" || !slices.Contains(fields, f) {
				t.Errorf("the status of %s has no field %q", kind, f)
			}
		}
		if got := UrgentOf(reflect.New(kind).Interface().(client.Object)); !reflect.DeepEqual(got, u) {
			t.Errorf("%s: got %+v", kind, got)
		}
	}
}

func status(fields map[string]any, conditions ...string) map[string]any {
	out := map[string]any{}
	for k, v := range fields {
		out[k] = v
	}
	var list []any
	for i := 0; i+1 < len(conditions); i += 2 {
		list = append(list, map[string]any{"type": conditions[i], "status": conditions[i+1], "message": fmt.Sprint(i)})
	}
	if list != nil {
		out["conditions"] = list
	}
	return out
}

func TestUrgent(t *testing.T) { // FG-03
	machines := Urgent{
		Fields: []string{"initialization", "nodeRef"}, Replaced: []string{"version"}, Conditions: []string{clusterv1.ReadyCondition, clusterv1.AvailableCondition},
		Reported: []string{clusterv1.MachineUpToDateCondition}, Replicas: true,
	}
	provisioned := map[string]any{"initialization": map[string]any{"provisioned": true}}
	replicas := func(n, available float64) map[string]any {
		return map[string]any{"replicas": n, "availableReplicas": available}
	}
	cases := map[string]struct {
		reason     string
		have, want map[string]any
		declared   Urgent
		urgent     bool
	}{
		"message":             {"a condition that only says something else", status(nil, "Ready", "False"), status(nil, "Other", "False", "Ready", "False"), machines, false},
		"phase":               {"a phase is for people", status(map[string]any{"phase": "a"}), status(map[string]any{"phase": "b"}), machines, false},
		"first":               {"nothing is reached yet", nil, status(map[string]any{"phase": "a"}, "Ready", "False"), machines, false},
		"initialization":      {"others go on when it is reached", status(nil), status(provisioned), machines, true},
		"calm here":           {"in this kind nobody looks at it", status(nil), status(provisioned), Urgent{}, false},
		"field":               {"others wait for it", status(nil), status(map[string]any{"nodeRef": "n"}), machines, true},
		"undeclared field":    {"nothing is known to wait for it", status(nil), status(map[string]any{"new": "n"}), machines, false},
		"undeclared ready":    {"nothing is known to wait for it", status(nil, "Ready", "False"), status(nil, "Ready", "True"), Urgent{}, false},
		"undeclared replicas": {"nothing is known to wait for them", status(replicas(5, 4)), status(replicas(5, 5)), Urgent{}, false},
		"field goes":          {"others wait for it", status(map[string]any{"nodeRef": "n"}), status(nil), machines, true},
		"first later":         {"nothing was there that others went by", status(nil), status(map[string]any{"version": "1"}), machines, false},
		"later":               {"others go by it", status(map[string]any{"version": "1"}), status(map[string]any{"version": "2"}), machines, true},
		"ready":               {"others count it", status(nil, "Ready", "False"), status(nil, "Ready", "True"), machines, true},
		"ready at once":       {"it was ready when it was seen first", nil, status(nil, "Ready", "True"), machines, true},
		"not ready":           {"others count it no more", status(nil, "Available", "True"), status(nil, "Available", "Unknown"), machines, true},
		"unknown":             {"it is not available either way", status(nil, "Available", "False"), status(nil, "Available", "Unknown"), machines, false},
		"up to date":          {"everybody expects it", status(nil, "Ready", "False"), status(nil, "Ready", "False", "UpToDate", "True"), machines, false},
		"not up to date":      {"a rollout begins", status(nil, "UpToDate", "True"), status(nil, "UpToDate", "False"), machines, true},
		"somebody else's":     {"another writer says it", status(nil, "UpToDate", "True"), status(nil, "Other", "False"), machines, false},
		"field of another":    {"another controller writes it", status(provisioned, "Ready", "False"), status(nil, "Other", "False"), Urgent{Shared: true, Fields: []string{"initialization"}}, false},
		"field of its own":    {"others wait for it", status(nil), status(provisioned), Urgent{Shared: true, Fields: []string{"initialization"}}, true},
		"unpaused":            {"it goes on", status(nil, "Paused", "True"), status(nil, "Paused", "False"), machines, true},
		"some available":      {"more will follow", status(replicas(5, 1)), status(replicas(5, 2)), machines, false},
		"all available":       {"a rollout goes on", status(replicas(5, 4)), status(replicas(5, 5)), machines, true},
		"fewer":               {"a rollout goes on", status(replicas(5, 5)), status(replicas(4, 4)), machines, true},
		"more are wanted":     {"nothing is available yet", status(replicas(5, 5)), status(replicas(6, 5)), machines, false},
		"all from the start":  {"a rollout goes on", nil, status(replicas(1, 1)), machines, true},
		"none from the start": {"there is nothing to count", nil, status(replicas(0, 0)), machines, false},
	}
	for name, tc := range cases {
		if got := tc.declared.Includes(tc.have, tc.want); got != tc.urgent {
			t.Errorf("%s: urgent %t, but %s", name, got, tc.reason)
		}
	}
}

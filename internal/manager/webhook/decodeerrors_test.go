package webhook

import (
	"encoding/json"
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// A value of the wrong type is named with its field, in the words of who wrote the manifest.
func TestUnreadable(t *testing.T) {
	for object, want := range map[string]string{
		`{"spec":{"template":{"spec":{"version":1.36}}}}`: "spec.template.spec.version has a number where a string belongs; write it in quotes",
		`{"spec":{"template":{"spec":{"version":true}}}}`: "spec.template.spec.version has true or false where a string belongs; write it in quotes",
		`{"spec":{"replicas":"3"}}`:                       "spec.replicas has a string where a number belongs",
		`{"spec":{"paused":"yes"}}`:                       "spec.paused has a string where true or false belongs",
		`{"spec":{"template":[]}}`:                        "spec.template has a list where an object belongs",
		`{"metadata":{"finalizers":{}}}`:                  "metadata.finalizers has an object where a list belongs",
		`{"spec":`:                                        "reading the object: unexpected end of JSON input",
	} {
		err := json.Unmarshal([]byte(object), &clusterv1.MachineDeployment{})
		if got := unreadable("the object", err).Error(); got != want {
			t.Errorf("%s: %s", object, got)
		}
	}
}

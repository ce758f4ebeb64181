package contract_test

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/sdk/contract"
)

// FuzzViews: whatever a provider's object holds, its views can be made and read.
func FuzzViews(f *testing.F) { // CT-07, CT-08, CT-12
	for _, seed := range []string{
		`{}`, `{"spec": 1, "status": []}`, `{"spec": null, "status": null}`,
		`{"spec": {"providerID": {}, "controlPlaneEndpoint": "x", "failureDomain": 7, "providerIDList": {"a": 1}, "replicas": 1e300, "version": []}}`,
		`{"status": {"initialization": true, "ready": "yes", "addresses": [1, null, {"type": 3}], "failureDomains": {"a": null, "b": {"controlPlane": "no"}}}}`,
		`{"status": {"conditions": [null, 1, {}, {"type": {}}, {"type": "Ready"}, {"type": "Ready", "status": "Perhaps"}]}}`,
		`{"status": {"conditions": {"type": "Ready"}, "v1beta2": {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1e99, "lastTransitionTime": 5}]}}}`,
		`{"status": {"replicas": -3000000000, "readyReplicas": "2", "versions": [{"version": 1}], "version": {}, "failureReason": [], "failureMessage": 1}}`,
		`{"status": {"infrastructureMachineKind": [], "dataSecretName": 5, "externalManagedControlPlane": "true"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var fields map[string]any
		if json.Unmarshal(data, &fields) != nil {
			return // not an object: the API server gives none
		}
		for _, version := range []contract.Version{contract.V1Beta1, contract.V1Beta2} {
			o := contract.Object{Unstructured: &unstructured.Unstructured{Object: fields}, Contract: version}
			read(t, o)
			read(t, contract.InfraCluster(o).Object)
			read(t, contract.InfraMachine(o).Object)
			read(t, contract.InfraMachinePool(o).Object)
			read(t, contract.BootstrapConfig(o).Object)
			v := contract.ControlPlane(o)
			read(t, v.Object)
			if err := v.Versions.Err(); (err != nil) != (v.Versions.Presence() == contract.Unreadable) {
				t.Errorf("versions: %v, presence %v", err, v.Versions.Presence())
			}
			_ = contract.RemediationTemplate(o)
		}
	})
}

// read reads what every kind has.
func read(t *testing.T, o contract.Object) {
	t.Helper()
	_ = o.Failure()
	for _, conditionType := range []string{"Ready", "Available", ""} {
		c := o.Condition(conditionType)
		if value, ok := c.Get(); ok && (value.Reason == "" || value.Status != "True" && value.Status != "False" && value.Status != "Unknown") {
			t.Errorf("condition %s is found and cannot be repeated: %+v", conditionType, value)
		}
		_ = c.Err()
	}
}

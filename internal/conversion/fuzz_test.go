package conversion

import (
	"encoding/json"
	"testing"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// FuzzRemembered: whatever a user writes into the annotation of what an older version could not say is refused, or makes an object that
// can be written in the older version.
func FuzzRemembered(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"spec":{"clusterName":"c"}}`, `{"spec":1}`, `[`, `null`, `{"spec":{"template":{"spec":{"taints":[{"key":"a"}]}}},"status":{"conditions":[{}]}}`, `{"metadata":{"name":"other"}}`,
	} {
		f.Add([]byte(`{"clusterName":"c","template":{"spec":{"clusterName":"c","bootstrap":{}}}}`), text)
	}
	c, err := New(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, spec []byte, remembered string) {
		in := &clusterv1beta1.MachineDeployment{}
		if json.Unmarshal(spec, &in.Spec) != nil {
			return
		}
		in.APIVersion, in.Kind, in.Name = clusterv1beta1.GroupVersion.String(), "MachineDeployment", "a"
		in.Annotations = map[string]string{DataAnnotation: remembered}
		hub, err := c.Convert(in, HubVersion)
		if err != nil {
			return
		}
		if _, err := c.Convert(hub, clusterv1beta1.GroupVersion.Version); err != nil {
			t.Errorf("%s with %q becomes an object that cannot be written in the older version: %v", spec, remembered, err)
		}
	})
}

package repository

import "testing"

// FuzzMetadata: whatever a release has as its metadata.yaml is refused, or names the contract of each of its series.
func FuzzMetadata(f *testing.F) {
	for _, text := range []string{
		"apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3\nkind: Metadata\nreleaseSeries:\n- {major: 1, minor: 2, contract: v1beta1}\n", "", "releaseSeries: x\n", "releaseSeries: [{major: -1}]\n", "{",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_ = LintMetadata(data)
		m, err := ParseMetadata(data, "f")
		if err != nil {
			return
		}
		for _, s := range m.ReleaseSeries {
			if !contractForm.MatchString(s.Contract) {
				t.Errorf("%q has a series with the contract %q", data, s.Contract)
			}
		}
	})
}

package repository

import "testing"

// FuzzParse: whatever is in the configuration file is refused with its mistakes, or can be used.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "providers:\n- name: a\n  url: https://x/infrastructure-components.yaml\n  type: InfrastructureProvider\n", "VAR: &a [1, *a]\n", "images: {all: {repository: r}}\n",
		"cert-manager: {version: v1, timeout: 1x}\n", "a: 1\na: 2\n", "- x\n", "variables: {1: 2}\n", "? [a]\n: b\n", "overridesFolder: 3\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := parseConfig(data, "f", ConfigEnvironment{})
		if (err == nil) != (file != nil) {
			t.Errorf("%q: %v, %v", data, file, err)
		}
	})
}

package template

import "testing"

// FuzzManifest: a manifest is refused, or converted to one of which nothing has to be converted any more.
func FuzzManifest(f *testing.F) {
	for _, text := range []string{
		"apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: a}\nspec: {paused: true}\n", "# c\n---\napiVersion: v1\nkind: Secret\n", "---\n---\n", "a: [\n",
		"apiVersion: cluster.x-k8s.io/v1beta1\nkind: MachineDeployment\nmetadata:\n  name: a\n  annotations: {cluster.x-k8s.io/conversion-data: '{\"spec\":1}'}\nspec: {clusterName: c}\n",
		"apiVersion: cluster.x-k8s.io/v1beta1\nkind: Nothing\n", "apiVersion: cluster.x-k8s.io/v1alpha4\nkind: Machine\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ConvertManifest(data, "v1beta2")
		if err != nil {
			return
		}
		again, err := ConvertManifest(r.YAML, "v1beta2")
		if err != nil || again.Converted != 0 {
			t.Errorf("%q becomes %q, of which %d are converted again: %v", data, r.YAML, again.Converted, err)
		}
	})
}

package template_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/clusterctl/template"
	"github.com/slipwayhq/slipway/internal/fault"
)

const older = `# a cluster
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata:
  name: demo
spec:
  paused: true
  infrastructureRef:
    apiVersion: infrastructure.slipway.dev/v1alpha1
    kind: LocalCluster
    name: demo
`

const newer = `apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata:
  name: demo
spec:
  infrastructureRef:
    apiGroup: infrastructure.slipway.dev
    kind: LocalCluster
    name: demo
  paused: true
`

const other = `# kept, with   spaces
apiVersion: infrastructure.slipway.dev/v1alpha1
kind: LocalCluster
metadata: {name: demo}
`

// CX-18: objects of cluster.x-k8s.io are converted, everything else stays as it is.
func TestConvertManifest(t *testing.T) {
	ancient := strings.ReplaceAll(older, "v1beta1", "v1alpha3")
	got, err := template.ConvertManifest([]byte(older+"---\n"+other+"---\n---\n"+newer+"---\n"+ancient), "v1beta2")
	if err != nil {
		t.Fatal(err)
	}
	want := template.ConvertResult{
		YAML: []byte(newer + "---\n" + other + "---\n" + newer + "---\n" + ancient), Converted: 1, Unchanged: 3,
		Notes: []string{"Document 4, Cluster demo, has version v1alpha3, which cannot be converted; it is unchanged."},
	}
	if d := cmp.Diff(want, got, cmp.Transformer("text", func(b []byte) string { return string(b) })); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	again, err := template.ConvertManifest(got.YAML, "v1beta2")
	if err != nil || again.Converted != 0 || string(again.YAML) != string(got.YAML) {
		t.Errorf("converting again: %+v, %v", again, err)
	}
}

// CX-18: nothing is lost without a word.
func TestRefusals(t *testing.T) {
	for name, tc := range map[string]struct{ data, version, want string }{
		"unknown field":   {strings.Replace(older, "paused: true", "pausd: true", 1), "v1beta2", "pausd"},
		"template":        {strings.Replace(older, "paused: true", "paused: ${PAUSED}", 1), "v1beta2", "document 1, Cluster demo"},
		"no YAML":         {"a: [", "v1beta2", "the manifest is invalid: document 1: "},
		"another version": {older, "v1beta1", "use v1beta2"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := template.ConvertManifest([]byte(tc.data), tc.version)
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.UserMessage(err), tc.want) {
				t.Errorf("error %v, want an Invalid fault with %q", err, tc.want)
			}
		})
	}
}

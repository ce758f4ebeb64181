package manifest_test

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/slipwayhq/slipway/internal/clusterctl/manifest"
)

// The quickstart is what `create cluster` would apply, with comments.
func TestQuickstartIsWhatTheCommandWrites(t *testing.T) {
	data, err := os.ReadFile("../../../examples/quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want, err := manifest.Cluster{
		Name: "quickstart", Version: "v1.36.3", Workers: 2, Subnet: netip.MustParsePrefix("172.30.0.0/16"),
	}.Objects()
	if err != nil {
		t.Fatal(err)
	}
	var got []*unstructured.Unstructured
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		u := &unstructured.Unstructured{}
		if err := d.Decode(u); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		got = append(got, u)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("examples/quickstart.yaml differs from the manifest of the command (-command +example):\n%s", d)
	}
}

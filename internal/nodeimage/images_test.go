package nodeimage

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/config/classes"
)

// The images of the network add-on are those that the node image contains.
func TestImagesOfTheNetworkAddOn(t *testing.T) {
	got := map[string]string{}
	for _, document := range strings.Split(classes.FlannelManifest(), "\n---\n") {
		set := &appsv1.DaemonSet{}
		if err := yaml.Unmarshal([]byte(document), set); err != nil {
			t.Fatal(err)
		}
		if set.Kind == "DaemonSet" {
			for _, c := range append(set.Spec.Template.Spec.InitContainers, set.Spec.Template.Spec.Containers...) {
				got[c.Name] = c.Image
			}
		}
	}
	want := map[string]string{"network": busyboxImage, "flanneld": flannelImage, "cni": flannelImage}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Examples, the quick start and end-to-end tests use the image for trying out a cluster that the node image contains.
func TestNamesOfTheTestImage(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	images := regexp.MustCompile(regexp.QuoteMeta(repository) + `/busybox:[0-9.]*[0-9]`)
	for _, file := range append(files, "../../docs/quickstart.md", "../../test/e2e/harness_test.go") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := images.FindAllString(string(text), -1)
		if len(found) == 0 && !strings.HasSuffix(file, ".yaml") {
			t.Errorf("%s does not use the image", file)
		}
		if i := slices.IndexFunc(found, func(image string) bool { return image != busyboxImage }); i >= 0 {
			t.Errorf("%s uses %s; the node image contains %s", file, found[i], busyboxImage)
		}
	}
}

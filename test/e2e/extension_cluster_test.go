package e2e

import (
	"os"
	"strings"
)

// paintedClass is the class that ships, with a variable and a patch for the handler set-image of an extension.
func (in *installation) paintedClass(extension string) string {
	in.t.Helper()
	data, err := os.ReadFile("../../config/classes/local.yaml")
	if err != nil {
		in.t.Fatal(err)
	}
	text := string(data)
	for from, to := range map[string]string{
		"kind: ClusterClass\nmetadata:\n  name: local\n": "kind: ClusterClass\nmetadata:\n  name: painted\n",
		"\n  variables:\n": "\n  variables:\n  - {name: image, required: false, schema: {openAPIV3Schema: {type: string}}}\n",
		"\n  patches:\n":   "\n  patches:\n  - {name: image, external: {generatePatchesExtension: set-image." + extension + "}}\n",
	} {
		if strings.Count(text, from) != 1 {
			in.t.Fatalf("the class has no %q", from)
		}
		text = strings.Replace(text, from, to, 1)
	}
	return text
}

// createPainted creates a cluster while the extension runs: check-owner holds it back until it has an owner, and set-image gives its
// nodes the image that it names. RT-01, LH-01, TM-01
func (in *installation) createPainted(s *session, extension string) {
	in.t.Helper()
	untilContains(in.t, long, "discovery", "has discovered 2 handlers", s.String)
	in.apply(in.paintedClass(extension))
	const image = "registry.example.com/node:v2"
	in.run("create", "cluster", "painted", "--class", "painted", "--workers", "0", "--set", "image="+image, "--wait-timeout", "0")
	untilContains(in.t, short, "it needs an owner", "BeforeClusterCreate: handler check-owner."+extension+": the Cluster needs the label example.com/owner", func() string {
		return in.condition("cluster/painted", "TopologyReconciled")
	})
	if made := in.get("localmachinetemplates", "{.items[*].spec.template.spec.backend.container.image}"); made != "" {
		in.t.Errorf("a template was made before the hook let go: %s", made)
	}
	in.kubectl("label", "cluster", "painted", "example.com/owner=me")
	until(in.t, short, "the image of the nodes", image, func() string {
		return in.get("localmachinetemplates", "{.items[*].spec.template.spec.backend.container.image}")
	})
	for _, line := range []string{
		"BeforeClusterCreate  check-owner  Cluster default/painted  Success, again in 10s", "GeneratePatches  set-image  Cluster default/painted  Success",
	} {
		untilContains(in.t, short, "the call is shown", line, s.String)
	}
	in.run("delete", "cluster", "painted")
	in.kubectl("delete", "clusterclass", "painted")
}

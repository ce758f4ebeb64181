package lint

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/fault"
)

const (
	label       = "infrastructure-demo"
	testVersion = "v1.2.0"
	components  = "infrastructure-components.yaml"
	meta        = "metadata.yaml"
	template    = "cluster-template.yaml"
	class       = "clusterclass-demo.yaml"
)

// copied is the good release in a folder of its own.
func copied(t *testing.T, label, version string) (root, dir string) {
	t.Helper()
	root = t.TempDir()
	dir = filepath.Join(root, label, version)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "infrastructure-demo", "v1.2.0"))); err != nil {
		t.Fatal(err)
	}
	return root, dir
}

func rewrite(t *testing.T, file, old, with string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if old != "" && !strings.Contains(string(data), old) {
		t.Fatalf("%s does not have %q: the violation would be none", file, old)
	}
	text := strings.Replace(string(data), old, with, 1)
	if old == "" {
		text = string(data) + with
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestGoodRelease(t *testing.T) {
	root, _ := copied(t, label, testVersion)
	releases, findings, err := Dir(root)
	if err != nil || releases != 1 || len(findings) > 0 {
		t.Errorf("%d releases, %v: %+v", releases, err, findings)
	}
}

// violation is one mistake in the good release: in a file, the text old becomes with; without old, with is added; without
// both the file is removed.
type violation struct{ file, old, with, rule string }

func violations() map[string]violation {
	const object = "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n  namespace: demo-system\n  labels: {cluster.x-k8s.io/provider: infrastructure-demo}\n"
	return map[string]violation{
		// CC2-01, CC2-06
		"no metadata":                   {meta, "", "", "metadata-present"},
		"metadata of another version":   {meta, "v1alpha3", "v1alpha4", "metadata-valid"},
		"unknown field":                 {meta, "kind: Metadata", "kind: Metadata\nseries: []", "metadata-valid"},
		"metadata is no YAML":           {meta, "releaseSeries:", "releaseSeries: [", "metadata-valid"},
		"series twice":                  {meta, "minor: 1", "minor: 2", "metadata-valid"},
		"no series":                     {meta, "minor: 2", "minor: 3", "metadata-series"},
		"contract of the future":        {meta, "contract: v1beta2", "contract: v9", "metadata-contract"},
		"no components":                 {components, "", "", "components-present"},                                   // CC2-07
		"variable not closed":           {components, "${DEMO_REPLICAS:=1}", "${DEMO_REPLICAS", "variables-readable"}, // CC2-10
		"empty default":                 {components, "${DEMO_REPLICAS:=1}", "${DEMO_REPLICAS:=}", "variable-defaults"},
		"no YAML":                       {components, "kind: Namespace", "kind: [", "manifest-readable"},
		"object without kind":           {components, "kind: Secret", "sort: Secret", "manifest-readable"},
		"two namespaces":                {components, "", "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: other, labels: {cluster.x-k8s.io/provider: infrastructure-demo}}\n", "single-namespace"}, // CC2-08
		"no namespace":                  {components, "kind: Namespace", "kind: Namespaces", "single-namespace"},
		"in another namespace":          {components, "", strings.Replace(object, "demo-system", "kube-system", 1), "same-namespace"},
		"label missing":                 {components, "", "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: demo-system}\n", "provider-label"}, // CC2-02
		"label of another":              {components, "cluster.x-k8s.io/provider: infrastructure-demo", "cluster.x-k8s.io/provider: infrastructure-other", "provider-label"},
		"twice":                         {components, "", object + object, "no-duplicates"},
		"service missing":               {components, "service: {namespace: demo-system, name: demo-webhook, path: /validate}", "service: {namespace: demo-system, name: webhook, path: /validate}", "service-present"},
		"service of conversion missing": {components, "name: demo-webhook, path: /convert", "name: webhook, path: /convert", "service-present"},
		"account missing":               {components, "serviceAccountName: demo-manager", "serviceAccountName: demo", "service-account-present"},
		"subject missing":               {components, "{kind: ServiceAccount, name: demo-manager,", "{kind: ServiceAccount, name: demo,", "service-account-present"},
		"certificate missing":           {components, "inject-ca-from: demo-system/demo-serving", "inject-ca-from: demo-system/serving", "certificate-present"},
		"certificate without namespace": {components, "inject-ca-from: demo-system/demo-serving", "inject-ca-from: demo-serving", "certificate-present"},
		"issuer missing":                {components, "issuerRef: {kind: Issuer, name: demo-issuer}", "issuerRef: {kind: Issuer, name: issuer}", "certificate-present"},
		"no deployment":                 {components, "kind: Deployment", "kind: ReplicaSet", "deployment-present"},
		"container of another name":     {components, "- name: manager\n        image", "- name: controller\n        image", "manager-container"}, // CC2-09
		"selector":                      {components, "labels: {app: demo}", "labels: {app: other}", "selector-matches"},
		"image without registry":        {components, "registry.example.com/team/demo:v1.2.0", "demo:v1.2.0", "image-canonical"},
		"image without version":         {components, "registry.example.com/team/demo:v1.2.0", "registry.example.com/team/demo", "image-canonical"},
		"image latest":                  {components, "team/demo:v1.2.0", "team/demo:latest", "image-canonical"},
		"one namespace watched":         {components, "args: [--leader-elect]", "args: [--namespace=demo]", "watches-all-namespaces"},
		"root":                          {components, "runAsNonRoot: true", "runAsNonRoot: false", "pod-security"},
		"privilege escalation":          {components, "allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", "pod-security"},
		"no probe":                      {components, "        livenessProbe: {httpGet: {path: /healthz, port: 9440}}\n", "", "probes"},
		"plural":                        {components, "name: democlusters.infrastructure.example.com", "name: democluster.infrastructure.example.com", "crd-name"}, // CT-05
		"cluster-wide":                  {components, "scope: Namespaced", "scope: Cluster", "crd-namespaced"},                                                     // CT-01
		"no contract label":             {components, "    cluster.x-k8s.io/v1beta2: v1\n", "", "crd-contract-label"},                                              // CT-04
		"contract label of no version":  {components, "cluster.x-k8s.io/v1beta2: v1\n", "cluster.x-k8s.io/v1beta2: v1_v2\n", "crd-contract-versions"},
		"list kind":                     {components, "listKind: DemoClusterList", "listKind: DemoClusters", "crd-list-kind"}, // CT-06
		"nothing stored":                {components, "storage: true", "storage: false", "crd-stored-version"},
		"versions of different fields": {components, "    schema: {openAPIV3Schema: {type: object}}\n", "    schema: {openAPIV3Schema: {type: object}}\n  - name: v2\n    served: true\n    storage: false\n" +
			"    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}\n", "crd-conversion"},
		"no status":                      {components, "    subresources: {status: {}}\n", "", "crd-status"},
		"no endpoint":                    {components, "controlPlaneEndpoint:", "endpoint:", "contract-ControlPlaneEndpoint"},
		"never provisioned":              {components, "{provisioned: {type: boolean}}", "{done: {type: boolean}}", "contract-ClusterProvisioned"},
		"no conditions":                  {components, "conditions: {type: array", "terms: {type: array", "contract-Conditions"},       // CT-07
		"role not aggregated":            {components, "    cluster.x-k8s.io/aggregate-to-manager: \"true\"\n", "", "aggregated-role"}, // CT-03
		"role lacks a verb":              {components, "verbs: [get, list, watch, create, update, patch, delete]", "verbs: [get, list, watch, create, update, patch]", "aggregated-role"},
		"everything allowed":             {components, "verbs: [get, list, watch, update, patch]", "verbs: [\"*\"]\n- {apiGroups: [\"*\"], resources: [\"*\"], verbs: [\"*\"]}", "least-privilege"},
		"cluster-admin":                  {components, "kind: ClusterRole, name: demo-manager}", "kind: ClusterRole, name: cluster-admin}", "no-cluster-admin"},
		"no template":                    {template, "", "", "template-present"},
		"every cluster of the same name": {template, "${CLUSTER_NAME}", "demo", "template-cluster"}, // CC2-11
		"no cluster":                     {template, "kind: Cluster", "kind: Clusters", "template-cluster"},
		"fixed namespace":                {template, "${NAMESPACE}", "default", "template-namespace"},
		"fixed version":                  {template, "${KUBERNETES_VERSION}", "v1.36.3", "template-variables"},
		"class of another name":          {class, "name: demo", "name: other", "class-name"}, // CC2-12
		"class in a namespace":           {class, "  name: demo", "  name: demo\n  namespace: default", "class-namespace"},
		"variable in a class":            {class, "spec: {}", "spec: {x: \"${X}\"}", "class-variables"},
	}
}

// Each mistake is found by the rule that it breaks.
func TestViolations(t *testing.T) {
	for name, v := range violations() {
		t.Run(name, func(t *testing.T) {
			root, dir := copied(t, label, testVersion)
			if v.old == "" && v.with == "" {
				if err := os.Remove(filepath.Join(dir, v.file)); err != nil {
					t.Fatal(err)
				}
			} else {
				rewrite(t, filepath.Join(dir, v.file), v.old, v.with)
			}
			_, findings, err := Dir(root)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(findings, func(f Finding) bool { return f.Rule == v.rule && f.Message != "" }) {
				t.Errorf("no finding of rule %s: %+v", v.rule, findings)
			}
		})
	}
	if len(violations()) < 30 {
		t.Errorf("%d violations", len(violations()))
	}
}

// CC2-02, CC2-11, CC2-12: what the contract recommends is advice, and what it leaves to clusterctl is no finding at all: real releases have
// objects without a namespace or label, flavors of a ClusterClass alone, and variables in ClusterClass files.
func TestRecommendationsAreAdvice(t *testing.T) {
	cases := map[string]violation{
		"no namespace in a template": {template, "  namespace: ${NAMESPACE}\n", "", ""},
		"class in a namespace":       {class, "  name: demo", "  name: demo\n  namespace: default", "class-namespace"},
		"variable in a class":        {class, "spec: {}", "spec: {x: \"${X}\"}", "class-variables"},
		"template of a class alone":  {template, "kind: Cluster\n", "kind: ClusterClass\n", "template-without-cluster"},
		"object without label":       {components, "", "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: demo-system}\n", "provider-label"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root, dir := copied(t, label, testVersion)
			rewrite(t, filepath.Join(dir, tc.file), tc.old, tc.with)
			_, findings, err := Dir(root)
			if err != nil || Mandatory(findings) > 0 {
				t.Errorf("%v: %+v", err, findings)
			}
			if found := slices.ContainsFunc(findings, func(f Finding) bool { return f.Rule == tc.rule }); found != (tc.rule != "") {
				t.Errorf("rule %q: %+v", tc.rule, findings)
			}
		})
	}
}

// A webhook converts, and versions with the same fields need none.
func TestConversionIsNotNeeded(t *testing.T) {
	root, dir := copied(t, label, testVersion)
	rewrite(t, filepath.Join(dir, components), "    schema: {openAPIV3Schema: {type: object}}\n", "    schema: {openAPIV3Schema: {type: object}}\n  - name: v2\n    served: true\n    storage: false\n    schema: {openAPIV3Schema: {type: object}}\n")
	if _, findings, err := Dir(root); err != nil || len(findings) > 0 {
		t.Errorf("%v: %+v", err, findings)
	}
}

// The folders are a part of the contract: local repositories find a version by them.
func TestFolders(t *testing.T) {
	tests := map[string]struct{ label, version, rule string }{
		"version without v":        {label, "1.2.0", "version-folder"},
		"no version":               {label, "release", "version-folder"},
		"type missing":             {"demo", testVersion, "provider-folder"},
		"name with capitals":       {"infrastructure-Demo", testVersion, "provider-folder"},
		"another type's folder":    {"bootstrap-demo", testVersion, "provider-folder"},
		"version without metadata": {label, "v2.0.0", "metadata-series"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root, _ := copied(t, test.label, test.version)
			_, findings, err := Dir(root)
			if err != nil || !slices.ContainsFunc(findings, func(f Finding) bool { return f.Rule == test.rule }) {
				t.Errorf("no finding of rule %s: %v %+v", test.rule, err, findings)
			}
		})
	}
}

// A Secret in a file without variables is the same for everyone.
func TestPlainSecret(t *testing.T) {
	root, dir := copied(t, label, testVersion)
	rewrite(t, filepath.Join(dir, components), "${DEMO_TOKEN}", "hunter2")
	rewrite(t, filepath.Join(dir, components), "${DEMO_REPLICAS:=1}", "1")
	_, findings, err := Dir(root)
	if err != nil || !slices.ContainsFunc(findings, func(f Finding) bool { return f.Rule == "no-plain-secret" && !strings.Contains(f.Message, "hunter2") }) {
		t.Errorf("%v %+v", err, findings)
	}
}

func TestComponentsOfTwoTypes(t *testing.T) {
	root, dir := copied(t, label, testVersion)
	if err := os.WriteFile(filepath.Join(dir, "bootstrap-components.yaml"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, findings, err := Dir(root)
	if err != nil || !slices.ContainsFunc(findings, func(f Finding) bool { return f.Rule == "components-present" }) {
		t.Errorf("%v %+v", err, findings)
	}
}

func TestNothingToCheck(t *testing.T) {
	for name, dir := range map[string]string{"an empty folder": t.TempDir(), "no folder": filepath.Join(t.TempDir(), "x"), "a file": "lint.go"} {
		if _, _, err := Dir(dir); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The names of rules are read by scripts: none is there twice.
func TestRuleNames(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Rules() {
		if seen[r.Name] || r.Name == "" || r.Description == "" {
			t.Errorf("rule %q: twice, or without a sentence", r.Name)
		}
		seen[r.Name] = true
	}
}

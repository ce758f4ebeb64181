package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// objects reads a manifest as JSON texts, in an order that does not depend on that of the manifest. Left out is what says nothing: the
// reference decodes some kinds into Go types, and their empty fields are then in its output.
func objects(t *testing.T, manifest string) []string {
	t.Helper()
	var out []string
	for d := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096); ; {
		var o map[string]any
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			slices.Sort(out)
			return out
		}
		if err != nil {
			t.Fatalf("%v in:\n%s", err, manifest)
		}
		if len(o) == 0 {
			continue
		}
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetIndent("", " ")
		delete(o, "status")
		prune(o)
		if err := encoder.Encode(o); err != nil {
			t.Fatal(err)
		}
		out = append(out, text.String())
	}
}

// prune removes fields without content.
func prune(v any) (empty bool) {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for key, value := range v {
			if prune(value) {
				delete(v, key)
			}
		}
		return len(v) == 0
	case []any:
		for _, one := range v {
			prune(one)
		}
	}
	return false
}

// lines are what a text for people says, in alphabetical order, without empty lines, indentation and the address of the file, which
// the reference cuts off before its version.
func lines(t *testing.T, text string) []string {
	t.Helper()
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.Join(strings.Fields(line), " "); line != "" && !strings.HasPrefix(line, "URL: ") {
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return out
}

// names are the variables of a list of them.
func names(t *testing.T, text string) []string {
	t.Helper()
	var out []string
	for line := range strings.Lines(text) {
		if name, is := strings.CutPrefix(strings.TrimSpace(line), "- "); is {
			out = append(out, strings.Fields(name)[0])
		}
	}
	slices.Sort(out)
	return out
}

// same runs a verb of both, and compares what they print; both may fail.
func (h home) same(t *testing.T, read func(*testing.T, string) []string, args ...string) (failed bool) {
	t.Helper()
	theirs, ours := h.run(t.Context(), tool(t, "clusterctl"), args...), h.run(t.Context(), slipway(t), args...)
	if (theirs.err == nil) != (ours.err == nil) {
		t.Errorf("%s: the reference says %v, slipway %v\n%s\n%s", strings.Join(args, " "), theirs.err, ours.err, theirs.said, ours.said)
		return true
	}
	if theirs.err != nil {
		return true
	}
	if d := cmp.Diff(read(t, theirs.out), read(t, ours.out)); d != "" {
		t.Errorf("%s (-reference +slipway):\n%s", strings.Join(args, " "), d)
	}
	return false
}

// variables of the environment in which templates are read.
func variables() []string {
	return []string{"WORD=some-Word-here", "NUMBER=7", "YES=true", "EMPTY=", "LEVEL=3", "TOKEN=c2VjcmV0", "KUBERNETES_VERSION=v1.36.3"}
}

// CX-05, CX-07: the same objects of the same templates, with every form of substitution.
func TestTemplates(t *testing.T) {
	h := newHome(t, variables()...)
	forms := 0
	for name, form := range substitutions() {
		forms++
		t.Run(name, func(t *testing.T) {
			text := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${CLUSTER_NAME}\ndata:\n  value: " + form.text + "\n"
			file := h.write(t, "templates/"+name+".yaml", text)
			plain := h.write(t, "plain/"+name+".yaml", strings.ReplaceAll(text, "${CLUSTER_NAME}", "demo"))
			if failed := h.same(t, objects, "generate", "yaml", "--from", plain); failed != form.fails {
				t.Errorf("generate yaml: both fail: %v, want %v", failed, form.fails)
			}
			if failed := h.same(t, objects, "generate", "cluster", "demo", "--from", file, "--target-namespace", "team"); failed != form.fails {
				t.Errorf("generate cluster: both fail: %v, want %v", failed, form.fails)
			}
			h.same(t, names, "generate", "yaml", "--from", file, "--list-variables")
		})
	}
	if forms < 20 {
		t.Errorf("%d forms, want 20", forms)
	}
}

type form struct {
	text string
	// fails says that both refuse it.
	fails bool
}

func substitutions() map[string]form {
	return map[string]form{
		"plain": {"${WORD}", false}, "spaces": {"${ WORD }", false}, "in text": {"a-${WORD}-b", false}, "number": {`"${NUMBER}"`, false}, "quoted": {`"${YES}"`, false},
		"default": {"${NONE:=fallback}", false}, "default of minus": {"${NONE:-fallback}", false}, "default of equals": {"${NONE=fallback}", false},
		"default not used": {"${WORD:=fallback}", false}, "default with quotes": {`${NONE:="a b"}`, false},
		"default of a variable": {"${NONE:=${WORD}}", false}, "empty with default": {"${EMPTY:=fallback}", false},
		"upper": {"${WORD^^}", false}, "upper first": {"${WORD^}", false}, "lower": {"${WORD,,}", false}, "lower first": {"${WORD,}", false},
		"length": {`"${#WORD}"`, false}, "from": {"${WORD:5}", false}, "part": {"${WORD:0:4}", false},
		"without prefix": {"${WORD#some-}", false}, "without longest prefix": {"${WORD##*-}", false}, "without suffix": {"${WORD%-here}", false}, "without longest suffix": {"${WORD%%-*}", false},
		"replaced": {"${WORD/e/a}", false}, "all replaced": {"${WORD//e/a}", false}, "prefix replaced": {"${WORD/#some/any}", false}, "suffix replaced": {"${WORD/%here/there}", false},
		"kept": {"$${WORD}", false}, "no braces": {"$WORD", false}, "price": {"5$", false}, "block": {"|\n    first ${WORD}\n    second ${NONE:=x}", false},
		"twice, first with a default": {"${NONE:=a}-${NONE:=b}", false}, "missing": {"${NONE}", true}, "not closed": {"${WORD", true},
		"second document": {"x\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: \"${WORD:0:4}\"}", false},
	}
}

const metadataFile = `apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries:
- {major: 1, minor: 0, contract: v1beta2}
`

// CX-06, CX-21, CC2-10, CC2-14: the same objects of the same components.
func TestComponents(t *testing.T) {
	h := newHome(t, variables()...)
	files := components()
	config := "images:\n  all: {repository: mirror.example/all}\n  infrastructure-images/second: {repository: mirror.example/second, tag: v9}\nproviders:\n"
	for name, c := range files {
		folder := "repository/infrastructure-" + name + "/v1.0.0/"
		path := h.write(t, folder+"infrastructure-components.yaml", c.text)
		h.write(t, folder+"metadata.yaml", metadataFile)
		config += "- {name: " + name + ", type: InfrastructureProvider, url: \"" + path + "\"}\n"
	}
	file := h.write(t, "clusterctl.yaml", config)
	for name, c := range files {
		t.Run(name, func(t *testing.T) {
			args := []string{"generate", "provider", "--config", file, "--infrastructure", name + ":v1.0.0"}
			if failed := h.same(t, objects, append(args, c.args...)...); failed != c.fails {
				t.Errorf("both fail: %v, want %v", failed, c.fails)
			}
			if !c.fails {
				h.same(t, objects, append(args, "--target-namespace", "elsewhere")...)
				h.same(t, lines, append(args, "--describe")...)
			}
		})
	}
	if len(files) < 12 {
		t.Errorf("%d files, want 12", len(files))
	}
}

type componentFile struct {
	text  string
	args  []string
	fails bool
}

const (
	namespace  = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a-system, labels: {own: kept}}\n---\n"
	deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: controller, namespace: a-system}
spec:
  selector: {matchLabels: {control-plane: controller}}
  template:
    metadata: {labels: {control-plane: controller}}
    spec:
      initContainers: [{name: first, image: "registry.example/first:v1.0.0"}]
      containers:
      - {name: manager, image: "registry.example/group/second:v1.0.0", args: ["--v=${LEVEL:=0}", "--token=${TOKEN}"]}
      - {name: proxy, image: "registry.example/second@sha256:0123456789012345678901234567890123456789012345678901234567890123"}
`
	rights = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: a-role}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: a-binding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: a-role}
subjects: [{kind: ServiceAccount, name: default, namespace: a-system}, {kind: User, name: alice, apiGroup: rbac.authorization.k8s.io}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: a-binding, namespace: a-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a-role}
subjects: [{kind: ServiceAccount, name: default, namespace: a-system}]
`
	webhooks = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: a-validation, annotations: {cert-manager.io/inject-ca-from: a-system/a-serving-cert}}
webhooks:
- name: a.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: a-webhook, namespace: a-system, path: /validate}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: a-defaulting}
webhooks:
- name: b.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: a-webhook, namespace: a-system, path: /default}}
`
	certificates = `apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: a-serving-cert, namespace: a-system}
spec:
  dnsNames: [a-webhook.a-system.svc, a-webhook.a-system.svc.cluster.local]
  issuerRef: {kind: Issuer, name: a-selfsigned}
  secretName: a-certificate
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: a-selfsigned, namespace: a-system}
spec: {selfSigned: {}}
`
	definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.infrastructure.cluster.x-k8s.io, labels: {cluster.x-k8s.io/v1beta2: v1}, annotations: {cert-manager.io/inject-ca-from: a-system/a-serving-cert}}
spec:
  group: infrastructure.cluster.x-k8s.io
  names: {kind: Thing, plural: things}
  scope: Namespaced
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: a-webhook, namespace: a-system, path: /convert}}}}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`
)

func components() map[string]componentFile {
	return map[string]componentFile{
		"plain":            {text: namespace + deployment},
		"raw":              {text: namespace + deployment, args: []string{"--raw"}},
		"images":           {text: namespace + deployment},
		"rights":           {text: namespace + deployment + "---\n" + rights},
		"webhooks":         {text: namespace + deployment + "---\n" + webhooks},
		"certificates":     {text: namespace + certificates + "---\n" + deployment},
		"definitions":      {text: namespace + definition + "---\n" + deployment},
		"everything":       {text: definition + "---\n" + rights + "---\n" + webhooks + "---\n" + certificates + "---\n" + namespace + deployment},
		"nowhere":          {text: strings.ReplaceAll(deployment, ", namespace: a-system", ""), fails: true},
		"somewhere":        {text: strings.ReplaceAll(deployment, ", namespace: a-system", "") + "---\n" + rights, args: []string{"--target-namespace", "b-system"}},
		"two-namespaces":   {text: namespace + strings.ReplaceAll(namespace, "a-system", "b-system") + deployment, fails: true},
		"variable-missing": {text: namespace + strings.ReplaceAll(deployment, "${TOKEN}", "${NONE}"), fails: true},
		"other-namespace":  {text: namespace + strings.ReplaceAll(deployment, "namespace: a-system", "namespace: kube-system") + "---\n" + rights},
		"cluster-scoped":   {text: namespace + "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a, namespace: a-system}\n---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: a}\nvalue: 1\n---\n" + deployment},
	}
}

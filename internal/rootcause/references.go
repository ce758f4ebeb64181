package rootcause

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// referencePaths lists the fields that refer to objects.
func referencePaths() [][]string {
	return [][]string{
		{"spec", "infrastructureRef"},
		{"spec", "bootstrap", "configRef"},
		{"spec", "controlPlaneRef"},
		{"spec", "machineTemplate", "spec", "infrastructureRef"},
		{"spec", "machineTemplate", "infrastructureRef"},
		{"spec", "template", "spec", "infrastructureRef"},
		{"spec", "template", "spec", "bootstrap", "configRef"},
		{"spec", "poolRef"},
		{"spec", "store", "secretRef"},
	}
}

// references returns the objects that the spec of an object refers to, the SSHHost of an SSHMachine, and the Machines that a
// MachineHealthCheck checks. The search and [Beneath] follow them.
func (o object) references() (out []Ref) {
	if o.ref.Group == clusterv1.GroupVersion.Group && o.ref.Kind == "MachineHealthCheck" {
		targets, _, _ := unstructured.NestedStringSlice(o.content.Object, "status", "targets")
		for _, name := range targets[:min(len(targets), maxChildren)] {
			out = append(out, Ref{o.ref.Group, "Machine", o.ref.Namespace, name})
		}
	}
	for _, path := range referencePaths() {
		if r, ok := o.referenceAt(path...); ok {
			out = append(out, r)
		}
	}
	if name, _, _ := unstructured.NestedString(o.content.Object, "spec", "topology", "classRef", "name"); name != "" {
		namespace, _, _ := unstructured.NestedString(o.content.Object, "spec", "topology", "classRef", "namespace")
		if namespace == "" {
			namespace = o.ref.Namespace
		}
		out = append(out, Ref{clusterv1.GroupVersion.Group, "ClusterClass", namespace, name})
	}
	if host := o.sshHost(); host.Name != "" && host != o.ref {
		out = append(out, host)
	}
	return out
}

// referenceAt returns the reference in a field, in the form of either contract version.
func (o object) referenceAt(path ...string) (Ref, bool) {
	value, _, err := unstructured.NestedFieldNoCopy(o.content.Object, path...)
	fields, ok := value.(map[string]any)
	if err != nil || !ok {
		return Ref{}, false
	}
	text := func(name string) string { s, _ := fields[name].(string); return s }
	group := text("apiGroup")
	if version := text("apiVersion"); group == "" && strings.Contains(version, "/") {
		group, _, _ = strings.Cut(version, "/")
	}
	r := Ref{group, text("kind"), o.ref.Namespace, text("name")}
	return r, r.Kind != "" && r.Name != ""
}

// Limits of the search for objects in messages.
const (
	maxMentions    = 32
	maxMatches     = 4 * maxMentions
	maxMentionText = 8192
	maxNameLength  = 253
)

var (
	// mentionForm matches the names of objects in messages: "Machine a", "Machines a, b", "Secret team/ca".
	mentionForm = regexp.MustCompile(`\b([A-Z][A-Za-z0-9]{1,62})\s([a-z0-9][a-z0-9./-]*(?:, [a-z0-9][a-z0-9./-]*)*)`)
	// handlerForm matches the handler of a Runtime Extension: "handler NAME.EXTENSIONCONFIG".
	handlerForm = regexp.MustCompile(`\b(?:handler|Extension) [a-z0-9][a-z0-9-]*\.([a-z0-9][a-z0-9.-]*)`)
)

// mention is an object that a message names. The search resolves it with [Graph].Resolve.
type mention struct{ kind, namespace, name string }

// mentions returns the objects that a message names, without duplicates. Most of the matches are no objects; callers
// look them up. It reports false if the message may name more objects. The search and the placeholders of remedies call
// it.
func mentions(message, namespace string) (out []mention, isComplete bool) {
	isComplete = len(message) <= maxMentionText
	message = message[:min(len(message), maxMentionText)]
	seen := map[mention]bool{}
	add := func(kind, name string) {
		name = strings.TrimRight(name, ".-/")
		m := mention{kind, namespace, name}
		if before, after, found := strings.Cut(name, "/"); found {
			m.namespace, m.name = before, after
		}
		switch {
		case m.name == "" || len(name) > 2*maxNameLength || strings.Contains(m.name, "/") || seen[m]:
		case len(out) >= maxMentions:
			isComplete = false
		default:
			seen[m] = true
			out = append(out, m)
		}
	}
	for _, m := range handlerForm.FindAllStringSubmatch(message, maxMentions+1) { // the last one exceeds the limit
		add("ExtensionConfig", m[1])
	}
	matches := mentionForm.FindAllStringSubmatch(message, maxMatches+1)
	isComplete = isComplete && len(matches) <= maxMatches
	for _, m := range matches[:min(len(matches), maxMatches)] {
		for name := range strings.SplitSeq(m[2], ", ") {
			add(m[1], name)
			if single, isPlural := strings.CutSuffix(m[1], "s"); isPlural {
				add(single, name)
			}
		}
	}
	return out, isComplete
}

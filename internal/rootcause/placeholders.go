package rootcause

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// placeholders returns the values of the placeholders for an object with a message. Unknown values are empty.
//
// Commands that delete take names from the object, its owners and its spec alone, because the author of a message may have
// no right to delete what it names.
func (o object) placeholders(message string, deletes bool) map[string]string {
	annotated, host := o.annotated(), o.sshHost()
	owner, _ := o.specifiedBy()
	values := map[string]string{
		"{kind}": o.ref.Kind, "{name}": o.ref.Name, "{namespace}": o.ref.Namespace, "{cluster}": o.cluster(),
		"{group}": o.ref.Group, "{resource}": resourceOf(o.ref),
		"{annotated}": annotated.String(), "{annotatedkind}": resourceOf(annotated), "{annotatedname}": annotated.Name,
		"{annotation}":  annotationForm.FindString(message[:min(len(message), maxMentionText)]),
		"{webhook}":     webhookIn(message),
		"{skewversion}": "", "{owner}": owner.String(), "{ownerkind}": resourceOf(owner), "{ownername}": owner.Name,
		"{machine}": o.machine(), "{node}": o.node(),
		"{bootstrap}": o.bootstrapSource(), "{bootstrapresource}": "kubeadmconfigtemplates",
		"{host}": host.Name, "{hostnamespace}": host.Namespace, "{record}": o.recordOnHost(),
	}
	if o.isOfControlPlane() {
		values["{bootstrapresource}"] = "kubeadmcontrolplanes"
	}
	values["{planeversion}"] = "the version of the control plane"
	if found := planeVersionForm.FindStringSubmatch(message[:min(len(message), maxMentionText)]); found != nil {
		values["{planeversion}"] = found[1]
		if slices.Contains([]string{"MachineDeployment", "MachineSet", "MachinePool"}, owner.Kind) {
			values["{skewversion}"] = found[1]
		}
	}
	named, _ := mentions(message, o.ref.Namespace)
	for placeholder, kind := range map[string]string{
		"{clusterclass}": clusterClassKind, "{configmap}": "ConfigMap", "{extension}": "ExtensionConfig", "{machine}": "Machine",
		"{node}": "Node", "{policy}": "EtcdSnapshotPolicy", "{secret}": "Secret",
	} {
		if values[placeholder] == "" && o.ref.Kind == kind {
			values[placeholder] = o.ref.Name
		}
		if values[placeholder] == "" {
			values[placeholder] = firstNamed(named, kind, o, deletes)
		}
	}
	return values
}

// isOfControlPlane reports whether the object is a Machine of a control plane, or belongs to one.
func (o object) isOfControlPlane() bool {
	_, is := o.content.GetLabels()[clusterv1.MachineControlPlaneLabel]
	return is
}

// bootstrapSource describes the object whose specification determines the bootstrap configuration of a Machine.
func (o object) bootstrapSource() string {
	name := o.content.GetLabels()[clusterv1.MachineControlPlaneNameLabel]
	switch {
	case o.isOfControlPlane() && name != "":
		return "spec.kubeadmConfigSpec of KubeadmControlPlane " + name
	case o.isOfControlPlane():
		return "spec.kubeadmConfigSpec of its KubeadmControlPlane"
	case o.cluster() != "":
		return "the KubeadmConfigTemplate of Cluster " + o.cluster()
	}
	return "its KubeadmConfigTemplate"
}

const clusterClassKind = "ClusterClass"

// resourceOf returns the kind in the form that kubectl resolves to one resource.
func resourceOf(r Ref) string {
	kind := strings.ToLower(r.Kind)
	if r.Group == "" {
		return kind
	}
	return kind + "." + r.Group
}

// machine returns the name of the Machine that the object is or belongs to.
func (o object) machine() string {
	if o.ref.Kind == "Machine" && o.ref.Group == clusterv1.GroupVersion.Group {
		return o.ref.Name
	}
	for _, owner := range ownersOf(o.content) {
		if owner.Kind == "Machine" && owner.Group == clusterv1.GroupVersion.Group {
			return owner.Name
		}
	}
	return ""
}

// node returns the name of the Node of a Machine.
func (o object) node() string {
	name, _, _ := unstructured.NestedString(o.content.Object, "status", "nodeRef", "name")
	return name
}

// firstNamed returns the first object of a kind and of the namespace of the object that a message names. If the command
// deletes, the object has to refer to it, too.
func firstNamed(named []mention, kind string, o object, deletes bool) string {
	for _, m := range named {
		isLocal := m.namespace == o.ref.Namespace || kind == "Node"
		if m.kind == kind && isLocal && (!deletes || kind != "Node" && o.hasResource(kind, m.name)) {
			return m.name
		}
	}
	return ""
}

// hasResource reports whether a ClusterResourceSet applies an object, or whether the object is the lock of the initialization
// of a control plane.
func (o object) hasResource(kind, name string) bool {
	if kind == "ConfigMap" && o.cluster() != "" && name == o.cluster()+"-lock" {
		return true
	}
	value, _, _ := unstructured.NestedFieldNoCopy(o.content.Object, "spec", "resources")
	list, _ := value.([]any)
	return slices.ContainsFunc(list[:min(len(list), maxConditions)], func(item any) bool {
		fields, _ := item.(map[string]any)
		return fields["kind"] == kind && fields["name"] == name
	})
}

var (
	// placeholderForm matches a placeholder.
	placeholderForm = regexp.MustCompile(`\{[a-z]+\}`)
	// namedForm matches a kind with its placeholder, such as "Machine {machine}".
	namedForm = regexp.MustCompile(`((?:[A-Z][A-Za-z]+ )+)\{([a-z]+)\}`)
)

// fillText replaces the placeholders of a text. Without a value, "Machine {machine}" becomes "the Machine". remedyOf
// calls it.
func fillText(text string, o object, message string) string {
	if !strings.Contains(text, "{") {
		return text
	}
	values := o.placeholders(message, false)
	text = namedForm.ReplaceAllStringFunc(text, func(found string) string {
		kind, placeholder, _ := strings.Cut(found, "{")
		first, rest, isSentence := strings.Cut(kind, " ")
		switch {
		case values["{"+placeholder] != "":
			return found
		case isSentence && slices.Contains([]string{"Correct", "Create", "Delete", "Remove", "Repair", "Restore", "Start"}, first):
			return first + " the " + strings.TrimSpace(rest)
		}
		return "the " + strings.TrimSpace(kind)
	})
	return replacePlaceholders(text, values, func(value string) string {
		if value == "" {
			return "NAME"
		}
		return value
	})
}

// fillCommand replaces the placeholders of a command with words for a shell. It returns an empty string if a value is unknown,
// because the command would have to be corrected. remedyOf calls it.
func fillCommand(command string, o object, message string) string {
	if !strings.Contains(command, "{") {
		return command
	}
	if o.ref.Namespace == "" {
		command = strings.ReplaceAll(command, " -n {namespace}", "")
	}
	values := o.placeholders(message, strings.Contains(command, " delete "))
	for _, placeholder := range placeholderForm.FindAllString(command, -1) {
		if value, known := values[placeholder]; known && value == "" {
			return ""
		}
	}
	return replacePlaceholders(command, values, shellWord)
}

func replacePlaceholders(text string, values map[string]string, format func(string) string) string {
	var pairs []string
	for _, placeholder := range slices.Sorted(maps.Keys(values)) {
		pairs = append(pairs, placeholder, format(values[placeholder]))
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// annotationForm matches an annotation of Slipway in a message.
var annotationForm = regexp.MustCompile(`\bsimulated\.[a-z0-9.-]+/[A-Za-z0-9._-]*[A-Za-z0-9]`)

// planeVersionForm matches the version of a control plane in a message about workers whose version it does not support.
var planeVersionForm = regexp.MustCompile(`(?:newer than|older than|with kubeadm:) version (v[0-9]+\.[0-9]+\.[0-9]+)\b`)

// webhookForm matches the webhook in a message of an API server that cannot call it.
var webhookForm = regexp.MustCompile(`failed calling webhook "([A-Za-z0-9][A-Za-z0-9.-]{0,252})"`)

// webhookIn returns the name of the webhook that cannot be called, or words for it.
func webhookIn(message string) string {
	if found := webhookForm.FindStringSubmatch(message[:min(len(message), maxMentionText)]); found != nil {
		return "webhook " + found[1]
	}
	return "the webhook that the message names"
}

// annotated returns the object that an annotation in a message of the object is on: of a Machine, its infrastructure.
func (o object) annotated() Ref {
	if target, ok := o.referenceAt("spec", "infrastructureRef"); ok && o.ref.Kind == "Machine" {
		return target
	}
	return o.ref
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9._/:@-]+$`)

// shellWord quotes a word for a shell if that is necessary.
func shellWord(word string) string {
	if plainWord.MatchString(word) && !strings.HasPrefix(word, "-") {
		return word
	}
	return fmt.Sprintf("'%s'", strings.ReplaceAll(word, "'", `'\''`))
}

// WithFlags returns a command of a remedy with the flags that select the management cluster, such as " --kubeconfig
// prod". The list commands, `slipway explain` and package ui call it, so that users can run the command as it is shown.
// It returns commands that do not connect to a management cluster as they are.
func WithFlags(command, flags string) string {
	words := strings.Fields(command)
	if flags == "" || len(words) < 3 || words[0] != "slipway" || words[2] == "--help" {
		return command
	}
	switch words[1] {
	case "kubectl":
		flags = strings.ReplaceAll(flags, "--kubeconfig-context ", "--context ")
	case "logs":
		_, directory, found := strings.Cut(flags, " --data-dir ")
		if !found {
			return command
		}
		flags = " --data-dir " + directory
	case "describe", "explain", "get", "hosts", "recover":
	default:
		return command
	}
	before, after, redirected := strings.Cut(command, " > ")
	if redirected {
		return before + flags + " > " + after
	}
	return command + flags
}

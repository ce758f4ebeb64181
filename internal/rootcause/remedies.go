package rootcause

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// remedy is a row of the tables of remedies. Texts and commands have placeholders: {kind}, {name}, {namespace}, {cluster},
// {group} and {resource} of the object, and {secret}, {configmap}, {clusterclass}, {extension}, {machine}, {node} and
// {policy} for the first object of these kinds that the message names. {annotation} is the annotation that the message names,
// and {annotated} is the object that has it, {annotatedkind} and {annotatedname} its kind and name.
type remedy struct {
	text, command string
	automatic     bool
	// isSpecific is false for reasons that many conditions share, such as NotReady.
	isSpecific bool
	// patience is the time for which the problem usually ends without a user.
	patience time.Duration
}

// within returns the remedy of a problem of an age.
func (r remedy) within(age time.Duration) remedy {
	if r.automatic || age >= r.patience {
		return r
	}
	return remedy{text: "It usually ends without a user. If it does not: " + lowerFirst(r.text), command: r.command, automatic: true}
}

func lowerFirst(text string) string { return strings.ToLower(text[:1]) + text[1:] }

// group is a remedy with the reasons that it ends.
type group struct {
	remedy
	reasons []string
}

// user returns the rows of reasons that a user ends.
func user(text, command string, reasons ...string) group {
	return group{remedy{text: text, command: command, isSpecific: true}, reasons}
}

// auto returns the rows of reasons that end without a user.
func auto(text string, reasons ...string) group {
	return group{remedy{text: text, automatic: true, isSpecific: true}, reasons}
}

// patient returns the group for problems that usually end without a user soon after they began.
func patient(patience time.Duration, g group) group {
	g.patience = patience
	return g
}

// unspecific returns the group for reasons that many conditions share.
func unspecific(g group) group {
	g.isSpecific = false
	return g
}

// reasonTable indexes the groups of remedies by reason.
func reasonTable() map[string]remedy {
	table := map[string]remedy{}
	for _, groups := range [][]group{commonRemedies(), machineRemedies(), planeRemedies(), topologyRemedies(), localRemedies(), snapshotRemedies()} {
		for _, g := range groups {
			for _, reason := range g.reasons {
				table[reason] = g.remedy
			}
		}
	}
	return table
}

var remediesByReason = reasonTable()

// isNormal reports whether a condition with the reason describes no problem, whatever its status.
func isNormal(reason string) bool {
	return slices.Contains([]string{"NoReplicas", "NoWorkers", "NotNeeded", "NotYetKnown", "Suspended"}, reason)
}

// phrase is a remedy for messages with a known text of a kubelet, etcd, Docker or another component.
type phrase struct {
	alternatives [][]string
	remedy
}

// findRemedy returns the remedy for a problem: by its message, else by its reason.
func findRemedy(l Link, now time.Time) (remedy, bool) {
	age := now.Sub(l.Since)
	message := strings.ToLower(l.Message)
	for _, p := range phrases {
		if p.matches(message) {
			return p.within(age), true
		}
	}
	r, known := remediesByReason[l.Reason]
	return r.within(age), known
}

// pendingForm matches reasons of work in progress.
var pendingForm = regexp.MustCompile(`^Waiting|Pending$|Provisioning$|InProgress$|Creating$|Deleting$|Starting$`)

// remedyOf returns the remedy at the end of a chain.
func remedyOf(o object, p problem, now time.Time) Remedy {
	if p.fixed.Text != "" {
		out := p.fixed
		out.Text, out.Command = fill(out.Text, o, p.Message, false), fill(out.Command, o, p.Message, true)
		return out
	}
	r, known := findRemedy(p.Link, now)
	switch {
	case !known:
		r = defaultRemedy(o, p)
	case p.weight == weightProgress && !r.isSpecific:
		r = remedy{text: progressText, automatic: true}
	}
	return Remedy{Text: fill(r.text, o, p.Message, false), Command: fill(r.command, o, p.Message, true), Automatic: r.automatic}
}

const (
	progressText = "The controller of {kind} is working on it; no action is needed"
	waitText     = "The controller of {kind} continues when this changes; no action is needed"
	describeText = "kubectl describe {resource} {name} -n {namespace}"
)

// waitRemedy returns the remedy of a wait that lasts until a user acts. The message of such a wait is an instruction.
func waitRemedy(l Link, now time.Time) Remedy {
	if r, known := findRemedy(l, now); known && !r.automatic {
		return Remedy{Text: r.text, Command: r.command}
	}
	return Remedy{Text: "Follow the message: {kind} {name} waits until a user acts", Command: describeText}
}

// defaultRemedy returns the remedy for a reason without one, for example a reason of a foreign provider.
func defaultRemedy(o object, p problem) remedy {
	switch {
	case p.weight == weightError:
		return remedy{text: "The controller of {kind} retries; if the error stays, correct what it names", command: describeText}
	case p.weight == weightWait && p.isTimed:
		return remedy{text: "It ends with time; no action is needed", automatic: true}
	case p.weight == weightWait:
		return remedy{text: waitText, automatic: true}
	case p.weight >= weightUnknown, p.weight == weightDeletion, pendingForm.MatchString(p.Reason):
		return remedy{text: progressText, automatic: true}
	case isOwnGroup(o.ref.Group):
		return remedy{text: "Correct what the message names; events of {kind} {name} have more", command: describeText}
	}
	return remedy{text: "The provider of {kind} (group {group}) reports this: read the events of the object and the log of the provider's controller, and correct the cause", command: describeText}
}

// isOwnGroup reports whether Slipway's controllers reconcile the kinds of a group.
func isOwnGroup(g string) bool {
	return strings.HasSuffix(g, ".slipway.dev") || strings.HasSuffix(g, clusterv1.GroupVersion.Group) && !strings.HasPrefix(g, "infrastructure.")
}

// placeholderKinds returns the kinds whose first object in the message fills a placeholder.
func placeholderKinds() map[string]string {
	return map[string]string{
		"{clusterclass}": "ClusterClass", "{configmap}": "ConfigMap", "{extension}": "ExtensionConfig", "{machine}": "Machine",
		"{node}": "Node", "{policy}": "EtcdSnapshotPolicy", "{secret}": "Secret",
	}
}

// fill replaces the placeholders of a text. In commands, values are quoted for a shell.
func fill(text string, o object, message string, isCommand bool) string {
	if !strings.Contains(text, "{") {
		return text
	}
	values := map[string]string{
		"{kind}": o.ref.Kind, "{name}": o.ref.Name, "{namespace}": o.ref.Namespace, "{cluster}": o.cluster(),
		"{group}": o.ref.Group, "{resource}": strings.ToLower(o.ref.Kind),
	}
	named := mentions(message, o.ref.Namespace)
	annotated := o.annotated()
	values["{annotated}"], values["{annotatedkind}"], values["{annotatedname}"] = annotated.String(), strings.ToLower(annotated.Kind), annotated.Name
	values["{annotation}"] = annotationForm.FindString(message[:min(len(message), maxMentionText)])
	for placeholder, kind := range placeholderKinds() {
		values[placeholder] = firstNamed(named, kind, o)
	}
	if o.ref.Namespace == "" {
		text = strings.ReplaceAll(text, " -n {namespace}", "")
	}
	var pairs []string
	for _, placeholder := range slices.Sorted(maps.Keys(values)) {
		value := values[placeholder]
		if value == "" {
			value = "NAME"
		}
		if isCommand {
			value = shellWord(value)
		}
		pairs = append(pairs, placeholder, value)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// annotationForm matches an annotation of Slipway in a message.
var annotationForm = regexp.MustCompile(`\bsimulated\.[a-z0-9.-]+/[A-Za-z0-9._-]*[A-Za-z0-9]`)

// annotated returns the object that an annotation in a message of the object is on: of a Machine, its infrastructure.
func (o object) annotated() Ref {
	if target, ok := o.referenceAt("spec", "infrastructureRef"); ok && o.ref.Kind == "Machine" {
		return target
	}
	return o.ref
}

// firstNamed returns the first object of a kind in a message, or the object itself if it has that kind.
func firstNamed(named []mention, kind string, o object) string {
	for _, m := range named {
		if m.kind == kind {
			return m.name
		}
	}
	switch {
	case o.ref.Kind == kind:
		return o.ref.Name
	case kind == "Node" || kind == "Machine": // provider objects of a Machine have its name
		return o.ref.Name
	}
	return ""
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9._/:@-]+$`)

// shellWord quotes a word for a shell if that is necessary.
func shellWord(word string) string {
	if plainWord.MatchString(word) && !strings.HasPrefix(word, "-") {
		return word
	}
	return fmt.Sprintf("'%s'", strings.ReplaceAll(word, "'", `'\''`))
}

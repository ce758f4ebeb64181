package rootcause

import (
	"regexp"
	"slices"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
)

// remedy is a row of the tables of remedies. Texts and commands have placeholders: {kind}, {name}, {namespace}, {cluster},
// {group} and {resource} of the object, {machine} and {node} of the Machine that it is or belongs to, {host}, {hostnamespace} and
// {record} of the SSHHost that it is or uses, and {secret}, {configmap}, {clusterclass}, {extension} and {policy} for the first
// object of these kinds that the message names. {annotation} is the annotation that the message names, and {annotated} is the object
// that has it, {annotatedkind} and {annotatedname} its kind and name. {bootstrap} is the field or object that determines the bootstrap
// configuration, and {bootstrapresource} its resource. {webhook} describes the webhook that the
// message names. {owner} is the object that determines the specification, {ownerkind} and {ownername} its kind and name.
// {planeversion} describes the version of the control plane that the message names, and {skewversion} is that version if the
// owner has it in spec.template.
type remedy struct {
	text, command string
	automatic     bool
	// isSpecific is false for reasons that many conditions share, such as NotReady.
	isSpecific bool
	// patience is the time for which the problem usually ends without a user.
	patience time.Duration
	// isConsequence is true for messages that other problems of the same object explain, and isConclusive for conclusions
	// that no other object explains.
	isConsequence, isConclusive bool
	// isEndless is true for automatic remedies that may take any time. Others are overdue after [OverdueAfter].
	isEndless bool
	// late is what a user can do when an automatic remedy is overdue. The zero value has a default.
	late instruction
}

// instruction is a text and a command for a user.
type instruction struct{ text, command string }

// OverdueAfter is the time after which a problem that should end without a user needs one. Package fleet marks a longer
// rollout as stalled.
const OverdueAfter = condition.LingerAfter

// within returns the remedy of a problem of an age.
func (r remedy) within(age time.Duration) remedy {
	if r.automatic || age >= r.patience {
		return r
	}
	return remedy{text: "It usually ends without a user. If it does not: " + lowerFirst(r.text), command: r.command, automatic: true}
}

// after returns the remedy for a problem of an age, and whether an automatic remedy is overdue.
func (r remedy) after(age time.Duration) (remedy, bool) {
	if !r.automatic || r.isEndless || age < OverdueAfter {
		return r, false
	}
	late := r.late
	if late.text == "" {
		late = instruction{"Read the log of the controller of {kind}: this should have ended without a user", describeText}
	}
	return remedy{text: late.text, command: late.command}, true
}

func lowerFirst(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToLower(text[:1]) + text[1:]
}

// toReplace ends the texts of remedies that consist of the replacement of a Machine, or have it as an alternative.
const toReplace = "to have it replaced"

// replaces reports whether the replacement of a Machine ends the problem.
func replaces(text string) bool { return strings.HasSuffix(text, toReplace) }

// group is a remedy with the reasons that it ends.
type group struct {
	remedy
	reasons []string
}

// user returns the rows of reasons that a user ends. The tables in remedies_*.go consist of such groups; endless,
// overdue, patient and unspecific change one.
func user(text, command string, reasons ...string) group {
	return group{remedy{text: text, command: command, isSpecific: true}, reasons}
}

// auto returns the rows of reasons that end without a user.
func auto(text string, reasons ...string) group {
	return group{remedy{text: text, automatic: true, isSpecific: true}, reasons}
}

// endless returns the group for problems that may take any time.
func endless(g group) group {
	g.isEndless = true
	return g
}

// overdue returns the group with an instruction for problems that did not end in time.
func overdue(text, command string, g group) group {
	g.late = instruction{text, command}
	return g
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

// reasonTable indexes the groups of remedies by reason. Each reason must be in one group only, which a test checks: a
// second one would replace the first.
func reasonTable() map[string]remedy {
	table := map[string]remedy{}
	for _, groups := range [][]group{commonRemedies(), machineRemedies(), planeRemedies(), topologyRemedies(), localRemedies(), snapshotRemedies(), sshRemedies()} {
		for _, g := range groups {
			for _, reason := range g.reasons {
				table[reason] = g.remedy
			}
		}
	}
	return table
}

var remediesByReason = reasonTable()

// isNormal reports whether a condition with the reason describes no problem, whatever its status. isExpected calls it
// for each condition.
func isNormal(reason string) bool {
	return slices.Contains([]string{"NoReplicas", "NoWorkers", "NotNeeded", "NotYetKnown", "Suspended", "InUse", "ContainerRuntimeFound"}, reason)
}

// phrase is a remedy for messages with a known text of a kubelet, etcd, Docker or another component.
type phrase struct {
	alternatives [][]string
	remedy
	// isGeneral is true for texts that many programs use. A reason with a specific remedy precedes them.
	isGeneral bool
}

// findRemedy returns the remedy for a problem: by a text of its message, else by its reason, else by a general text.
func findRemedy(l Link, now time.Time) (remedy, bool) {
	age := max(0, now.Sub(l.Since))
	message := strings.ToLower(l.Message)
	r, known := remediesByReason[l.Reason]
	for _, p := range phrases {
		if p.isGeneral && known && r.isSpecific {
			break
		}
		if p.matches(message) {
			return p.within(age), true
		}
	}
	if !known {
		return remedy{}, false
	}
	return r.within(age), true
}

// pendingForm matches reasons of work in progress.
var pendingForm = regexp.MustCompile(`^Waiting|Pending$|Provisioning$|InProgress$|Creating$|Deleting$|Starting$`)

// remedyOf returns the remedy at the end of a chain, and whether it is one for an automatic remedy that is overdue.
func remedyOf(o object, p problem, now time.Time) (Remedy, bool) {
	if p.fixed.Text != "" {
		out := p.fixed
		out.Text, out.Command = fillText(out.Text, o, p.Message), fillCommand(out.Command, o, p.Message)
		return out, false
	}
	r, known := findRemedy(p.Link, now)
	switch {
	case o.isDeleting() && replaces(r.text):
		r = remedy{text: waitText, automatic: true}
	case !known, r.automatic && p.isSevere:
		r = defaultRemedy(o, p)
	case p.weight == weightProgress && !r.isSpecific:
		r = remedy{text: progressText, automatic: true}
	}
	isLate := false
	if p.weight != weightProgress && !p.Since.IsZero() {
		r, isLate = r.after(now.Sub(p.Since))
	}
	return Remedy{Text: fillText(r.text, o, p.Message), Command: fillCommand(r.command, o, p.Message), Automatic: r.automatic}, isLate
}

const (
	progressText = "The controller of {kind} is working on it; no action is needed"
	waitText     = "The controller of {kind} continues when this changes; no action is needed"
	describeText = "slipway kubectl describe {resource} {name} -n {namespace}"
)

// waitRemedy returns the remedy of a wait that lasts until a user acts. The message of such a wait is an instruction.
// The search calls it for the waits of plans.
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
	case p.weight >= weightUnknown, p.weight == weightDeletion, !p.isSevere && pendingForm.MatchString(p.Reason):
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

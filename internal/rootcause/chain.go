package rootcause

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/slipwayhq/slipway/internal/redact"
)

// Limits of texts, in bytes.
const (
	maxMessage = 4096
	maxSummary = 240
)

// Ref identifies an object. `slipway explain` prints it as JSON, too.
type Ref struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns "Kind name", the form of an object in messages.
func (r Ref) String() string { return r.Kind + " " + r.Name }

// Qualified returns "Kind namespace/name".
func (r Ref) Qualified() string {
	if r.Namespace == "" {
		return r.String()
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// GroupKind returns the group and the kind.
func (r Ref) GroupKind() schema.GroupKind { return schema.GroupKind{Group: r.Group, Kind: r.Kind} }

func (r Ref) compare(o Ref) int {
	return cmp.Or(
		strings.Compare(r.Namespace, o.Namespace), strings.Compare(r.Kind, o.Kind),
		strings.Compare(r.Name, o.Name), strings.Compare(r.Group, o.Group),
	)
}

// Link is one object of a chain with the problem that leads to the next one.
type Link struct {
	Object Ref `json:"object"`
	// Type is the type of the condition that reports the problem. It is empty if no condition does.
	Type    string `json:"type,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Since is the time when the problem began. It is zero if that is unknown.
	Since time.Time `json:"since,omitzero"`
}

// Remedy is what ends a problem. Commands and the page of `slipway ui` show it.
type Remedy struct {
	// Text is an instruction, or a description of what happens without a user if Automatic is true.
	Text string `json:"text"`
	// Command is the shell command of the instruction. It may be empty.
	Command   string `json:"command,omitempty"`
	Automatic bool   `json:"automatic,omitempty"`
	// At is the time of an automatic remedy. It is zero if that is unknown.
	At time.Time `json:"at,omitzero"`
}

// Chain is the way from an object to the root cause of its problem.
type Chain struct {
	Links  []Link `json:"links"`
	Remedy Remedy `json:"remedy"`
	// Affects has the Clusters that the root cause affects, that of the root first. [Problems] sets it.
	Affects []Ref `json:"affects,omitempty"`
	// Plans reports whether plans of a manager were used. Otherwise the chain relies on conditions, owners and references
	// alone.
	Plans bool `json:"plans"`
	// Time is the time for which the chain was computed.
	Time time.Time `json:"time"`

	weight weight
	// isLate is true if the remedy replaces an automatic one that is overdue.
	isLate bool
}

// Root returns the last link, the root cause. It is zero for an empty chain.
func (c Chain) Root() Link {
	if len(c.Links) == 0 {
		return Link{}
	}
	return c.Links[len(c.Links)-1]
}

// NeedsUser reports whether the problem lasts until a user acts.
func (c Chain) NeedsUser() bool { return c.Remedy.Text != "" && !c.Remedy.Automatic }

// IsWarning reports whether all objects of the chain are as they should be, and the chain is a warning. Such a chain
// makes no cluster unhealthy.
func (c Chain) IsWarning() bool { return c.weight == weightWarning }

// IsProgress reports whether the chain ends with work in progress, and nothing reports why it has not ended yet.
// Package fleet changes the remedy of such a chain when it stalls.
func (c Chain) IsProgress() bool { return c.weight == weightProgress }

// hasUserTask reports whether the chain ends at a known task of a user. The search prefers such chains.
func (c Chain) hasUserTask() bool { return c.NeedsUser() && !c.isLate }

// OneLine returns a message without line breaks. Items of a list are separated by semicolons. Package fleet formats the
// reasons of wide lists with it.
func OneLine(message string) string {
	var out strings.Builder
	for line := range strings.Lines(message) {
		text, isItem := strings.CutPrefix(strings.Join(strings.Fields(line), " "), "* ")
		switch {
		case text == "":
			continue
		case out.Len() == 0:
		case isItem && !strings.HasSuffix(out.String(), ":"):
			out.WriteString("; ")
		default:
			out.WriteString(" ")
		}
		out.WriteString(text)
	}
	return out.String()
}

// Summary returns the root cause in one line, such as "Machine demo-x: the machine does not run (since 5m)". `slipway
// describe cluster` and `slipway explain` print it.
func Summary(c Chain) string {
	root := c.Root()
	text := redact.Escape(fmt.Sprintf("%s: %s", root.Object, redact.Clip(cmp.Or(OneLine(root.Message), root.Reason, root.Type), maxSummary)))
	if root.Since.IsZero() || c.Time.Before(root.Since) {
		return text
	}
	return fmt.Sprintf("%s (since %s)", text, duration.HumanDuration(c.Time.Sub(root.Since)))
}

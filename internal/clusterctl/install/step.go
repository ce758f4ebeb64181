package install

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Verb is the action of a step. Runner.step executes it; a new verb needs a case there. Scripts read the values in the
// output of --dry-run.
type Verb string

// The verbs of a step.
const (
	// Apply creates or updates an object.
	Apply Verb = "apply"
	// Delete deletes an object, and waits until it is gone.
	Delete Verb = "delete"
	// Stop sets the replicas of a Deployment to zero.
	Stop Verb = "stop"
	// Serve waits until a CRD is served.
	Serve Verb = "serve"
	// Await waits until a Deployment is available.
	Await Verb = "await"
	// Accept waits until the API server accepts an object in a dry run, which requires that its webhooks work.
	Accept Verb = "accept"
	// Migrate rewrites all objects of a CRD in its current storage version.
	Migrate Verb = "migrate"
	// certify issues the certificates for components.
	certify Verb = "certify"
)

// Step is one action on one object. It must be idempotent, because an interrupted command runs its plan again. Packages
// install, providerupgrade and certificates plan steps; a [Runner] executes them.
type Step struct {
	Verb Verb
	// Provider is the label of the step's provider; empty for all providers.
	Provider string
	// Object is the object to apply, or to send in the dry run of [Accept]. Other verbs use only its kind and name.
	Object *unstructured.Unstructured
	// Timeout is the timeout of a wait; zero means the timeout of the Runner.
	Timeout time.Duration
	// Why is the reason for the step, if it is not obvious.
	Why string
}

// String describes the step in one sentence.
func (s Step) String() string {
	var out strings.Builder
	out.WriteString(string(s.Verb))
	if s.Object != nil {
		fmt.Fprintf(&out, " %s %s", s.Object.GetKind(), s.Object.GetName())
		if ns := s.Object.GetNamespace(); ns != "" {
			out.WriteString(" in namespace " + ns)
		}
		if hash := secretHash(s); hash != "" {
			out.WriteString(" (data sha256:" + hash + ")")
		}
	}
	if s.Why != "" {
		out.WriteString(": " + s.Why)
	}
	return out.String()
}

// secretHash returns a short hash of the data of a Secret, to compare it without revealing it. The name is included, so
// that equal data in two Secrets has different hashes.
func secretHash(s Step) string {
	if s.Object.GetKind() != "Secret" || s.Verb != Apply {
		return ""
	}
	data, err := json.Marshal([]any{s.Object.GetNamespace(), s.Object.GetName(), s.Object.Object["data"], s.Object.Object["stringData"]})
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))[:12]
}

// StepOutput is the output format of a step for -o json and -o yaml. Scripts depend on its field names.
type StepOutput struct {
	Verb      Verb   `json:"verb"`
	Provider  string `json:"provider,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	DataHash  string `json:"dataHash,omitempty"`
	Why       string `json:"why,omitempty"`
}

// Plan is the list of steps of a change, in order. [Runner.Run] executes it.
type Plan struct {
	Steps []Step
	// Notes explain what is not done, and why.
	Notes []string
}

// Shown returns the steps in their output format. The commands print it with -o json and -o yaml.
func (p Plan) Shown() []StepOutput {
	out := make([]StepOutput, 0, len(p.Steps))
	for _, s := range p.Steps {
		shown := StepOutput{Verb: s.Verb, Provider: s.Provider, Why: s.Why}
		if s.Object != nil {
			shown.Kind, shown.Namespace, shown.Name = s.Object.GetKind(), s.Object.GetNamespace(), s.Object.GetName()
			shown.DataHash = secretHash(s)
		}
		out = append(out, shown)
	}
	return out
}

// Lines describes the steps in one sentence each. The commands print it with --dry-run.
func (p Plan) Lines() []string {
	var out []string
	for _, s := range p.Steps {
		line := s.String()
		if s.Provider != "" {
			line = s.Provider + ": " + line
		}
		out = append(out, line)
	}
	return out
}

// add appends steps. [Install] and [Uninstall] call it.
func (p *Plan) add(steps ...Step) { p.Steps = append(p.Steps, steps...) }

package installation

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Verb is what a step does.
type Verb string

// The verbs.
const (
	// Apply creates an object, or brings it up to date.
	Apply Verb = "apply"
	// Delete deletes an object, and waits until it is gone where others need its name.
	Delete Verb = "delete"
	// Stop sets the replicas of a Deployment to zero.
	Stop Verb = "stop"
	// Serve waits until a CRD is served.
	Serve Verb = "serve"
	// Await waits until a Deployment is available.
	Await Verb = "await"
	// Accept waits until the API server accepts an object, which is not written: those who are called for it answer.
	Accept Verb = "accept"
	// Migrate has all objects of a CRD stored in its present version.
	Migrate Verb = "migrate"
	// Certify issues the certificates that components ask for.
	Certify Verb = "certify"
)

// Step is one thing to do to one object. It may be repeated.
type Step struct {
	Verb Verb
	// Provider is the label of the provider that the step is for; empty: for all.
	Provider string
	// Object that is applied; of the others, only its kind and name count.
	Object *unstructured.Unstructured
	// Timeout of a step that waits; zero: that of the Runner.
	Timeout time.Duration
	// Why the step is there, where the verb and the object do not say it.
	Why string
}

// String is the step as a sentence.
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

// secretHash is a short hash of the data of a Secret that is applied: enough to compare, and no data. The name is part of
// what is hashed, so that equal data of two Secrets is not seen to be equal.
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

// Shown is a step as it is printed with -o json and -o yaml.
type Shown struct {
	Verb      Verb   `json:"verb"`
	Provider  string `json:"provider,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	DataHash  string `json:"dataHash,omitempty"`
	Why       string `json:"why,omitempty"`
}

// Plan is what a change does, in its order.
type Plan struct {
	Steps []Step
	// Notes say what is not done and why; they are not of the plan's steps.
	Notes []string
}

// Shown are the steps as they are printed.
func (p Plan) Shown() []Shown {
	out := make([]Shown, 0, len(p.Steps))
	for _, s := range p.Steps {
		shown := Shown{Verb: s.Verb, Provider: s.Provider, Why: s.Why}
		if s.Object != nil {
			shown.Kind, shown.Namespace, shown.Name = s.Object.GetKind(), s.Object.GetNamespace(), s.Object.GetName()
			shown.DataHash = secretHash(s)
		}
		out = append(out, shown)
	}
	return out
}

// Lines are the steps as sentences.
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

func (p *Plan) add(steps ...Step) { p.Steps = append(p.Steps, steps...) }

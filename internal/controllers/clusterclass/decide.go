package clusterclass

import (
	"fmt"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/topology/variables"
)

// Discover is the question which variables the extension of a patch defines.
type Discover struct{ Patch, Extension string }

// String says what is to be found out.
func (d Discover) String() string {
	return "which variables extension " + d.Extension + " of patch " + d.Patch + " defines"
}

// Own is the action that makes the class an owner of a template.
type Own struct {
	Ref clusterv1.ClusterClassTemplateReference
}

// String says what is done and why.
func (o Own) String() string {
	return fmt.Sprintf("own %s %s: the class refers to it", o.Ref.Kind, o.Ref.Name)
}

// Independent: another template that cannot be written does not keep this one from being owned.
func (Own) Independent() {}

const (
	// retryDiscovery is after which time an extension that failed is asked again, rediscover one that answered.
	retryDiscovery = 15 * time.Second
	rediscover     = 10 * time.Minute
)

// discoveries are the questions to extensions, in the order of the patches.
func discoveries(class *clusterv1.ClusterClass) []Discover {
	var out []Discover
	for _, p := range class.Spec.Patches {
		if p.External != nil && p.External.DiscoverVariablesExtension != "" {
			out = append(out, Discover{Patch: p.Name, Extension: p.External.DiscoverVariablesExtension})
		}
	}
	return out
}

// Decide says what to do about a class.
func Decide(s Snapshot) loop.Plan {
	var p loop.Plan
	if s.RuntimeSDK {
		for _, d := range discoveries(s.Class) {
			if _, known := s.Discovered[d]; !known {
				p.Ask = append(p.Ask, d)
			}
		}
		if len(p.Ask) > 0 {
			return p
		}
	}
	for _, t := range s.Templates {
		name := fmt.Sprintf("%s %s", t.Ref.Kind, t.Ref.Name)
		switch {
		case t.Problem != "":
			p.WaitFor("TemplateUnreadable", "%s cannot be read: %s", name, t.Problem).For(t.Ref.Kind, t.Ref.Name).ForPerson()
		case t.Object.Unstructured == nil:
			p.WaitFor("TemplateMissing", "Waiting for %s to be created", name).For(t.Ref.Kind, t.Ref.Name).ToChange("")
		case !owns(s.Class, t.Object):
			p.Do(Own{Ref: t.Ref})
		}
	}
	if v := s.variables(); v.problem() != "" {
		p.WaitFor("VariableDiscoveryFailed", "%s; retrying in up to 1m", v.problem()).For("ClusterClass", s.Class.Name).ForTime()
		p.RecheckIn(retryDiscovery)
	} else if len(s.Discovered) > 0 {
		p.RecheckIn(rediscover)
	}
	return p
}

// merged are the variables of the class and its extensions.
type merged struct {
	list     []clusterv1.ClusterClassStatusVariable
	problems []string
}

func (m merged) problem() string { return strings.Join(m.problems, "; ") }

// conflicts are the names of variables whose definitions differ.
func (m merged) conflicts() []string {
	var out []string
	for _, v := range m.list {
		if v.DefinitionsConflict != nil && *v.DefinitionsConflict {
			out = append(out, v.Name)
		}
	}
	return out
}

// maxVariables is how many variables the status of a class holds.
const maxVariables = 1000

// variables merges what the class and its extensions define.
func (s Snapshot) variables() merged {
	out := merged{}
	sources := []variables.Source{{From: clusterv1.VariableDefinitionFromInline, List: s.Class.Spec.Variables}}
	for _, d := range discoveries(s.Class) {
		found, known := s.Discovered[d]
		if !known {
			continue
		}
		if found.Problem != "" {
			out.problems = append(out.problems, found.Problem)
			continue
		}
		sources = append(sources, variables.Source{From: d.Patch, List: found.Variables})
	}
	out.list = variables.MergeDefinitions(sources)
	if len(out.list) > maxVariables {
		out.problems = append(out.problems, fmt.Sprintf("the class and its extensions define more than %d variables; remove some", maxVariables))
	}
	return out
}

package clusterclass

import (
	"fmt"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/topology/variables"
)

// discover requests the variables that the extension of a patch defines. The Read function of the controller
// (observe.go) performs the call.
type discover struct{ Patch, Extension string }

func (d discover) String() string {
	return "which variables extension " + d.Extension + " of patch " + d.Patch + " defines"
}

// own is the action that makes the class an owner of a template. act (act.go) runs it.
type own struct {
	Ref clusterv1.ClusterClassTemplateReference
}

func (o own) String() string {
	return fmt.Sprintf("own %s %s: the class refers to it", o.Ref.Kind, o.Ref.Name)
}

// Independent marks actions that may run in parallel: a template that cannot be written must not prevent the class
// from owning the others. Package reconciler checks for this method.
func (own) Independent() {}

const (
	// retryDiscovery is the delay before a failed extension is called again, rediscover the interval for calling
	// one that responded.
	retryDiscovery = 15 * time.Second
	rediscover     = 10 * time.Minute
)

// discoveries returns the discovery calls in the order of the patches.
func discoveries(class *clusterv1.ClusterClass) []discover {
	var out []discover
	for _, p := range class.Spec.Patches {
		if p.External != nil && p.External.DiscoverVariablesExtension != "" {
			out = append(out, discover{Patch: p.Name, Extension: p.External.DiscoverVariablesExtension})
		}
	}
	return out
}

// decide computes the plan for a class: call the extensions that define variables, become an owner of the templates,
// and wait for missing templates. Package reconciler calls it in each reconciliation, again after each call of an
// extension. It is pure: it neither reads nor writes.
func decide(s snapshot) reconciler.Plan {
	var p reconciler.Plan
	if s.RuntimeSDK {
		for _, d := range discoveries(s.Class) {
			if _, known := s.Discovered[d]; !known {
				p.Reads = append(p.Reads, d)
			}
		}
		if len(p.Reads) > 0 {
			return p
		}
	}
	for _, t := range s.Templates {
		name := fmt.Sprintf("%s %s", t.Ref.Kind, t.Ref.Name)
		switch {
		case t.Problem != "":
			p.WaitFor("TemplateUnreadable", "%s cannot be read: %s", name, t.Problem).For(t.Ref.Kind, t.Ref.Name).UntilUserActs()
		case t.Object.Unstructured == nil:
			p.WaitFor("TemplateMissing", "Waiting for %s to be created", name).For(t.Ref.Kind, t.Ref.Name).ToChange("")
		case !owns(s.Class, t.Object):
			p.Do(own{Ref: t.Ref})
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

// merged contains the variables of the class and its extensions.
type merged struct {
	list     []clusterv1.ClusterClassStatusVariable
	problems []string
}

func (m merged) problem() string { return strings.Join(m.problems, "; ") }

// conflicts returns the names of variables with conflicting definitions. The condition VariablesReady lists them.
func (m merged) conflicts() []string {
	var out []string
	for _, v := range m.list {
		if v.DefinitionsConflict != nil && *v.DefinitionsConflict {
			out = append(out, v.Name)
		}
	}
	return out
}

// maxVariables is the maximum number of variables that the API accepts in the status of a class.
const maxVariables = 1000

// variables merges the variables of the class and its extensions.
func (s snapshot) variables() merged {
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

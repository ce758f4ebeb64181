package template

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipwayhq/slipway/internal/clusterctl/repository"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manifest"
	"github.com/slipwayhq/slipway/internal/version"
)

// reasonOptions is the reason when the options are invalid; Invalid.
const reasonOptions = "InvalidTemplateOptions"

// reasonTemplate is the reason when a template is invalid; Invalid.
const reasonTemplate = "InvalidClusterTemplate"

// Options are the options for one cluster. `slipway generate cluster` fills them in.
type Options struct {
	Name, Namespace string
	// KubernetesVersion is the Kubernetes version; empty for the variable KUBERNETES_VERSION.
	KubernetesVersion string
	// ControlPlaneMachines and WorkerMachines are the numbers of machines; nil for the variables, or else 1 and 0.
	ControlPlaneMachines, WorkerMachines *int64
	// Lookup returns the values of other variables.
	Lookup repository.Lookup
	// Processor processes the template; nil means [repository.Envsubst].
	Processor repository.Processor
}

func (o Options) processor() repository.Processor {
	if o.Processor == nil {
		return repository.Envsubst{}
	}
	return o.Processor
}

// machineCount is a number of machines with its variable and minimum.
type machineCount struct {
	given    *int64
	variable string
	least    int64
}

// values validates the options, and returns a lookup that includes them.
func (o Options) values() (repository.Lookup, error) {
	if problems := validation.IsDNS1123Label(o.Namespace); len(problems) > 0 {
		return nil, invalid("%q is not a valid namespace name; correct --target-namespace", o.Namespace)
	}
	if problems := validation.IsDNS1123Subdomain(o.Name); len(problems) > 0 {
		return nil, invalid("%q is not a valid cluster name: use lower-case letters, digits, - and .", o.Name)
	}
	set := map[string]string{"CLUSTER_NAME": o.Name, "NAMESPACE": o.Namespace}
	if o.KubernetesVersion != "" {
		if _, err := version.ParseSemantic(o.KubernetesVersion); err != nil {
			return nil, invalid("%q is not a valid Kubernetes version; write --kubernetes-version as v1.36.3", o.KubernetesVersion)
		}
		set["KUBERNETES_VERSION"] = o.KubernetesVersion
	}
	for _, c := range []machineCount{{o.ControlPlaneMachines, "CONTROL_PLANE_MACHINE_COUNT", 1}, {o.WorkerMachines, "WORKER_MACHINE_COUNT", 0}} {
		n, err := c.value(o.Lookup)
		if err != nil {
			return nil, err
		}
		set[c.variable] = strconv.FormatInt(n, 10)
	}
	return func(name string) (string, bool) {
		if value, ok := set[name]; ok {
			return value, true
		}
		return o.Lookup(name)
	}, nil
}

func (c machineCount) value(lookup repository.Lookup) (int64, error) {
	n := c.least
	if c.given != nil {
		n = *c.given
	} else if text, ok := lookup(c.variable); ok {
		var err error
		if n, err = strconv.ParseInt(text, 10, 64); err != nil {
			return 0, invalid("the variable %s is not a number; correct it", c.variable)
		}
	}
	if n < c.least {
		return 0, invalid("%d is too low for %s; use %d or more", n, c.variable, c.least)
	}
	return n, nil
}

func invalid(message string, args ...any) error {
	return fault.New(fault.Invalid, reasonOptions, message, args...)
}

// Template is the manifest of a cluster that "slipway generate cluster" prints.
type Template struct {
	// Variables are the variables in the text.
	Variables []repository.Variable
	Objects   []*unstructured.Unstructured
}

// New builds the manifest from the text of a template. `slipway generate cluster` calls it.
func New(data []byte, o Options) (*Template, error) {
	lookup, err := o.values()
	if err != nil {
		return nil, err
	}
	t := &Template{}
	if t.Variables, err = o.processor().Variables(data); err != nil {
		return nil, err
	}
	if data, err = o.processor().Process(data, lookup); err != nil {
		return nil, err
	}
	if t.Objects, err = manifest.Objects(data); err != nil { // err may contain the value of a variable, so it is omitted
		return nil, fault.New(fault.Invalid, reasonTemplate, "the template is not a valid manifest after variable substitution; check the template and the values of its variables")
	}
	if len(t.Objects) == 0 {
		return nil, fault.New(fault.Invalid, reasonTemplate, "the template has no objects; check its location")
	}
	repository.SetNamespace(t.Objects, o.Namespace)
	return t, nil
}

// YAML encodes the manifest as a multi-document YAML stream. Commands print the result.
func (t *Template) YAML() ([]byte, error) { return manifest.YAML(t.Objects) }

// Merge adds the variables and objects of another template before the existing ones. [Release.Template] adds the
// ClusterClass with it.
func (t *Template) Merge(before *Template) {
	t.Objects = append(slices.Clone(before.Objects), t.Objects...)
	for _, v := range before.Variables {
		if !slices.ContainsFunc(t.Variables, func(w repository.Variable) bool { return w.Name == v.Name }) {
			t.Variables = append(t.Variables, v)
		}
	}
	slices.SortFunc(t.Variables, func(a, b repository.Variable) int { return strings.Compare(a.Name, b.Name) })
}

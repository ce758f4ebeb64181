package clusterclass

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/topology"
	"github.com/slipwayhq/slipway/internal/topology/variables"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// snapshot is the input of all decisions about a class. observe fills it in each reconciliation.
type snapshot struct {
	Now       time.Time
	Class     *clusterv1.ClusterClass
	Templates []classTemplate
	// RuntimeSDK is false if extensions are not called.
	RuntimeSDK bool
	// Discovered contains the responses of extensions in this reconciliation.
	Discovered map[discover]discovered
}

// classTemplate is a template that the class references. decide compares its owners, and act changes them.
type classTemplate struct {
	Ref    clusterv1.ClusterClassTemplateReference
	Object contract.Object
	// Problem explains why the template cannot be read.
	Problem string
	// Newest is the API version of the kind that implements the newest contract. It is empty if the kind cannot be
	// read.
	Newest string
}

// discovered is the response of one extension.
type discovered struct {
	Variables []clusterv1.ClusterClassVariable
	// Problem explains why there is no valid response.
	Problem string
}

// observe reads the snapshot of a class. Package reconciler calls it at the beginning of each reconciliation.
func (c *controller) observe(ctx context.Context, class *clusterv1.ClusterClass) (snapshot, error) {
	s := snapshot{Now: c.now(), Class: class, RuntimeSDK: c.extensions != nil, Discovered: map[discover]discovered{}}
	for _, ref := range topology.TemplateRefs(class) {
		t, err := c.readTemplate(ctx, class.Namespace, ref)
		if err != nil {
			return s, err
		}
		s.Templates = append(s.Templates, t)
	}
	return s, nil
}

func (c *controller) readTemplate(ctx context.Context, namespace string, ref clusterv1.ClusterClassTemplateReference) (classTemplate, error) {
	t := classTemplate{Ref: ref}
	kind := ref.GroupVersionKind()
	var err error
	t.Object, err = c.refs.GetAs(ctx, kind.Version, withoutVersion(ref), namespace)
	if f := fault.As(err); f != nil && f.Kind == fault.Invalid {
		t.Problem, err = f.Message, nil
	}
	if err != nil {
		return t, err
	}
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(kube.CRDKind())
	name := contract.CRDNameOf(withoutVersion(ref))
	if err := c.client.Get(ctx, client.ObjectKey{Name: name}, crd, client.UnsafeDisableDeepCopy); err != nil {
		return t, ignoreAbsent(err, t.Problem)
	}
	if _, newest, err := contract.Resolve(name, crd.Labels); err == nil {
		t.Newest = newest
	}
	return t, nil
}

// ignoreAbsent drops the error for a kind that is not installed, because the template already has this problem.
func ignoreAbsent(err error, problem string) error {
	if problem != "" {
		return nil
	}
	return fmt.Errorf("reading the version of a template's kind: %w", err)
}

// answerKept is how long the variables of an extension are cached.
const answerKept = 10 * time.Minute

// answer calls an extension for its variables. Package reconciler calls it for each read that [decide] requests.
func (c *controller) answer(ctx context.Context, s snapshot, q reconciler.ReadRequest) (snapshot, error) {
	d, ok := q.(discover)
	if !ok {
		return s, reconciler.UnknownRead("clusterclass", q)
	}
	request := &runtimehooksv1.DiscoverVariablesRequest{}
	request.Settings = settingsOf(s.Class, d.Patch)
	response := &runtimehooksv1.DiscoverVariablesResponse{}
	err := c.extensions.Call(ctx, s.Class, d.Extension, hook.Invocation{Request: request, Response: response, CacheTTL: answerKept})
	found := checked(s.Class, d, response.Variables)
	if err != nil {
		found = discovered{Problem: fault.UserMessage(err)}
	}
	known := make(map[discover]discovered, len(s.Discovered)+1)
	for question, answer := range s.Discovered {
		known[question] = answer
	}
	known[d] = found
	s.Discovered = known
	return s, nil
}

func settingsOf(class *clusterv1.ClusterClass, patch string) map[string]string {
	for _, p := range class.Spec.Patches {
		if p.Name == patch && p.External != nil {
			return p.External.Settings
		}
	}
	return nil
}

// checked validates the variables of an extension with the rules for variables of a class.
func checked(class *clusterv1.ClusterClass, d discover, list []clusterv1.ClusterClassVariable) discovered {
	list = required(list)
	before := variables.DefinitionsFrom(class.Status.Variables, d.Patch)
	if errs := variables.ValidateDefinitions(list, before, field.NewPath("variables")); len(errs) > 0 {
		return discovered{Problem: fmt.Sprintf("extension %s defines variables that are not valid: %s; correct the extension", d.Extension, errs[0].Error())}
	}
	return discovered{Variables: list}
}

// required sets Required to false in definitions that do not set it.
func required(list []clusterv1.ClusterClassVariable) []clusterv1.ClusterClassVariable {
	out := slices.Clone(list)
	for i := range out {
		if out[i].Required == nil {
			out[i].Required = new(false)
		}
	}
	return out
}

package plan

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/internal/rootcause"
)

// ExplainCommand returns the explain command, for package cli.
func ExplainCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain [KIND/NAME]",
		Short: "Explain why an object is not as it should be, and what to do",
		Long: `Explain why an object of the management cluster is not as it should be: the objects from it to the
root cause, the time when the cause began, and what to do or what happens without a user. Then show the
last plan of each controller of a Slipway manager for the object: its actions, the objects that it waits
for, and the event that ends each wait. An explanation of a Cluster is for all its objects.

Without an argument, list the problems in the namespace that need action, the most urgent first.

The command works with every implementation of Cluster API. Without a reachable Slipway manager, it uses
conditions, owners and references alone, and says so. Every user who may get an object may read its plans.
A problem of the processes of "slipway up" on this host comes first, because no object reports it.

The manager of "slipway up" is found through its data directory. For another manager, set --manager
to the URL of its diagnostics, for example the local end of "kubectl port-forward".`,
		Example: `  slipway explain
  slipway explain --all-namespaces
  slipway explain cluster/demo
  slipway explain machine/demo-workers-x2c9f -o yaml
  slipway explain localmachine/demo-workers-x2c9f -n team
  slipway explain cluster/demo --kubeconfig prod.kubeconfig --manager https://127.0.0.1:8443 --manager-ca ca.crt`,
		Args: atMostOneObject,
	}
	connection := management.AddFlags(cmd.Flags())
	cmd.Flags().Lookup("namespace").Usage = "namespace of the object (default: the namespace of the context)"
	all := cmd.Flags().BoolP("all-namespaces", "A", false, "without KIND/NAME, list the problems in all namespaces")
	flags := addFlags(cmd.Flags(), connection)
	format := term.AddOutputFlag(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *all && len(args) > 0 {
			return fault.New(fault.Invalid, "Usage", "--all-namespaces cannot be used with KIND/NAME")
		}
		x, err := newExplainer(cmd.Context(), e, flags)
		if err != nil {
			return err
		}
		if len(args) == 0 {
			list, err := x.list(cmd.Context(), *all)
			if err != nil {
				return err
			}
			return format.Print(e.Out, list, func(w io.Writer) error { return writeList(w, list) })
		}
		kind, name, _ := strings.Cut(args[0], "/")
		s, err := x.explain(cmd.Context(), kind, name)
		if err != nil {
			return err
		}
		return format.Print(e.Out, s, func(w io.Writer) error { return writeExplanation(w, s) })
	}
	return cmd
}

// atMostOneObject accepts no argument or KIND/NAME.
func atMostOneObject(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if err := term.ExactlyOneArgument("KIND/NAME")(cmd, args); err != nil {
		return err
	}
	kind, name, ok := strings.Cut(args[0], "/")
	if !ok || kind == "" || name == "" || strings.Contains(name, "/") {
		return fault.New(fault.Invalid, "Usage", "%q is not KIND/NAME, such as machine/demo-workers-x2c9f", args[0])
	}
	return nil
}

// explanation is the result of the command for one object. [explainer.explain] returns it, and writeExplanation prints
// it as text. Scripts depend on the field names.
type explanation struct {
	// ObjectPlans has the plans of a Slipway manager. They are empty if there is none.
	manager.ObjectPlans
	// Process is the problem of the processes of the management cluster, which may reconcile nothing. It is nil if there is
	// none.
	Process *chain `json:"process,omitempty"`
	// Chain leads to the root cause. It is nil if everything is as it should be.
	Chain *chain `json:"chain,omitempty"`
	// Others are the other root causes of the object and of the objects beneath it.
	Others []chain `json:"others,omitempty"`
	// Upcoming has the remediations that are due.
	Upcoming []rootcause.Action `json:"upcoming,omitempty"`
	// PlansMissing is the reason why there are no plans.
	PlansMissing string `json:"plansMissing,omitempty"`
	// Unreadable lists the kinds that could not be read, with the reasons.
	Unreadable []string `json:"unreadable,omitempty"`
	// Limits lists the limits of the search that were reached.
	Limits []string `json:"limits,omitempty"`

	ref rootcause.Ref
	now time.Time
}

// problemList is the result of the command without an argument. [explainer.list] returns it, and writeList prints it as
// text. Scripts depend on the field names.
type problemList struct {
	Namespace string `json:"namespace,omitempty"`
	// Process is the problem of the processes of the management cluster; nil: there is none.
	Process *chain `json:"process,omitempty"`
	// Problems has the chains that need a user, then the others.
	Problems     []chain  `json:"problems"`
	PlansMissing string   `json:"plansMissing,omitempty"`
	Unreadable   []string `json:"unreadable,omitempty"`
	Limits       []string `json:"limits,omitempty"`

	now time.Time
}

// chain is a chain with the field that programs select by. It is a part of [explanation] and [problemList].
type chain struct {
	rootcause.Chain
	NeedsUser bool `json:"needsUser"`
}

// newChain returns a chain whose command has the flags that select the management cluster.
func newChain(c rootcause.Chain, flags string) chain {
	c.Remedy.Command = rootcause.WithFlags(c.Remedy.Command, flags)
	return chain{c, c.NeedsUser()}
}

func chainsOf(chains []rootcause.Chain, flags string) []chain {
	out := []chain{}
	for _, c := range chains {
		out = append(out, newChain(c, flags))
	}
	return out
}

// explainer has the sources from which the explain command reads. newExplainer creates it once for the command.
type explainer struct {
	env        term.Env
	connection *management.Connection
	kinds      management.Kinds
	plans      *planReader
}

func newExplainer(ctx context.Context, e term.Env, flags *managerFlags) (*explainer, error) {
	c, err := flags.connection.Connect(e)
	if err != nil {
		return nil, err
	}
	kinds, err := management.NewKinds(c.Config)
	if err != nil {
		return nil, c.Explain(err)
	}
	plans, err := flags.newPlanReader(ctx, e, c)
	return &explainer{e, c, kinds, plans}, err
}

// graph returns the objects of a namespace, or of all.
func (x *explainer) graph(ctx context.Context, namespace string) *rootcause.Reader {
	return rootcause.NewReader(ctx, rootcause.ReaderOptions{Client: x.connection.Client, Mapper: x.kinds.Mapper(), Plans: x.plans.source(), Namespace: namespace})
}

// explain explains one object.
func (x *explainer) explain(ctx context.Context, kind, name string) (explanation, error) {
	o, err := x.findObject(ctx, kind, name)
	if err != nil {
		return explanation{}, x.connection.Explain(err)
	}
	ref := rootcause.Ref{Group: o.kind.Group, Kind: o.kind.Kind, Namespace: o.key.Namespace, Name: o.key.Name}
	s := explanation{ref: ref, now: x.env.Now()}
	if s.ObjectPlans, err = x.plans.read(ctx, ref); err != nil {
		return s, err
	}
	s.Kind, s.Namespace, s.Name = ref.Kind, ref.Namespace, ref.Name
	s.Process = x.processProblem()
	g := x.graph(ctx, x.connection.Namespace)
	if c, found := rootcause.Explain(g, ref, s.now); found {
		first := newChain(c, x.connection.RepeatFlags)
		s.Chain = &first
	}
	beneath := rootcause.Beneath(g, ref)
	s.Upcoming = rootcause.Upcoming(g, beneath, s.now)
	s.Others = s.otherCauses(chainsOf(rootcause.Problems(g, beneath, s.now), x.connection.RepeatFlags))
	s.PlansMissing, s.Unreadable, s.Limits = x.plans.missing(g, ref), g.Unreadable(), g.Limits()
	return s, x.connection.Explain(g.Err())
}

// processProblem returns the problem of the processes of the management cluster; nil: there is none.
func (x *explainer) processProblem() *chain {
	c, found := x.connection.ProcessProblem()
	if !found {
		return nil
	}
	return &chain{c, c.NeedsUser()}
}

// otherCauses returns the chains that need a user and have another root cause than the chain of the object.
func (s explanation) otherCauses(chains []chain) (out []chain) {
	for _, c := range chains {
		if c.NeedsUser && (s.Chain == nil || c.Root().Object != s.Chain.Root().Object) {
			out = append(out, c)
		}
	}
	return out
}

// list returns everything that is not as it should be.
func (x *explainer) list(ctx context.Context, all bool) (problemList, error) {
	out := problemList{Namespace: x.connection.Namespace, Process: x.processProblem(), now: x.env.Now()}
	if all {
		out.Namespace = ""
	}
	g := x.graph(ctx, out.Namespace)
	out.Problems = chainsOf(rootcause.Problems(g, g.Roots(), out.now), x.connection.RepeatFlags)
	out.PlansMissing, out.Unreadable, out.Limits = x.plans.missing(g, rootcause.Ref{}), g.Unreadable(), g.Limits()
	return out, x.connection.Explain(g.Err())
}

// objectReference identifies the object of a plan. findObject returns it for an argument; [managerClient.readPlans]
// requests the plans of such an object.
type objectReference struct {
	kind schema.GroupKind
	key  client.ObjectKey
}

// findObject reads the object of an argument, to distinguish an object that does not exist from one without a plan.
func (x *explainer) findObject(ctx context.Context, kind, name string) (objectReference, error) {
	mapping, err := x.kinds.Find(kind)
	if err != nil {
		return objectReference{}, err
	}
	o := objectReference{kind: mapping.GroupVersionKind.GroupKind(), key: client.ObjectKey{Name: name}}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		o.key.Namespace = x.connection.Namespace
	}
	read := &metav1.PartialObjectMetadata{}
	read.SetGroupVersionKind(mapping.GroupVersionKind)
	err = x.connection.Client.Get(ctx, o.key, read)
	if apierrors.IsNotFound(err) {
		return o, fault.New(fault.Gone, "NotFound", "%s does not exist; see \"slipway kubectl get %s --all-namespaces\"", o, mapping.Resource.Resource).From(err)
	}
	return o, err
}

// String formats the object for messages.
func (o objectReference) String() string {
	if o.key.Namespace == "" {
		return o.kind.Kind + " " + o.key.Name
	}
	return fmt.Sprintf("%s %s in namespace %s", o.kind.Kind, o.key.Name, o.key.Namespace)
}

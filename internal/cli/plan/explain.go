package plan

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
)

// ExplainCommand returns the explain command.
func ExplainCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain KIND/NAME",
		Short: "Explain the current plan of the manager for an object",
		Long: `Explain the plan of the manager for an object: the last plan of each of its controllers, the objects
that the plan waits for, and the event that ends each wait. The plans are read from the running
manager. Every user who may get the object may read them.

The manager of "slipway up" is found through its data directory. For another manager, set --manager
to the URL of its diagnostics, for example the local end of "kubectl port-forward".`,
		Example: `  slipway explain cluster/demo
  slipway explain machine/demo-workers-x2c9f -o yaml
  slipway explain localmachine/demo-workers-x2c9f -n team
  slipway explain cluster/demo --kubeconfig prod.kubeconfig --manager https://127.0.0.1:8443 --manager-ca ca.crt`,
		Args: term.ExactlyOneArgument("KIND/NAME"),
	}
	connection := management.AddFlags(cmd.Flags())
	cmd.Flags().Lookup("namespace").Usage = "namespace of the object (default: the namespace of the context)"
	flags := addFlags(cmd.Flags(), connection)
	format := term.AddOutputFlag(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		kind, name, ok := strings.Cut(args[0], "/")
		if !ok || kind == "" || name == "" || strings.Contains(name, "/") {
			return fault.New(fault.Invalid, "Usage", "%q is not KIND/NAME, such as machine/demo-workers-x2c9f", args[0])
		}
		c, err := connection.Connect(e)
		if err != nil {
			return err
		}
		o, err := findObject(cmd.Context(), c, kind, name)
		if err != nil {
			return c.Explain(err)
		}
		m, err := flags.newClient(e, c)
		if err != nil {
			return err
		}
		last, err := m.readPlans(cmd.Context(), o)
		if err != nil {
			return err
		}
		return format.Print(e.Out, last, func(w io.Writer) error { return writeExplanation(w, explanation{last, c.RepeatFlags}, e.Now()) })
	}
	return cmd
}

// objectReference identifies the object of a plan.
type objectReference struct {
	kind schema.GroupKind
	key  client.ObjectKey
}

// findObject reads the object of an argument, to distinguish an object that does not exist from one without a plan.
func findObject(ctx context.Context, c *management.Connection, kind, name string) (objectReference, error) {
	kinds, err := management.NewKinds(c.Config)
	if err != nil {
		return objectReference{}, err
	}
	mapping, err := kinds.Find(kind)
	if err != nil {
		return objectReference{}, err
	}
	o := objectReference{kind: mapping.GroupVersionKind.GroupKind(), key: client.ObjectKey{Name: name}}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		o.key.Namespace = c.Namespace
	}
	read := &metav1.PartialObjectMetadata{}
	read.SetGroupVersionKind(mapping.GroupVersionKind)
	err = c.Client.Get(ctx, o.key, read)
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

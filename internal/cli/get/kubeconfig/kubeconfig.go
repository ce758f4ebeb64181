package kubeconfig

import (
	"context"
	"fmt"
	"os/user"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/argument"
	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/clusterctl/kubeconfig"
	"github.com/slipwayhq/slipway/internal/clusterctl/personal"
	"github.com/slipwayhq/slipway/internal/fault"
	safe "github.com/slipwayhq/slipway/internal/kubeconfig"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/policy"
)

// flags are those of the verb.
type flags struct {
	merge bool
	admin bool
	file  string
	user  string
	role  string
	valid time.Duration
}

// Command builds the verb.
func Command(e env.Env) *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:   "kubeconfig CLUSTER",
		Short: "Print the kubeconfig of a workload cluster",
		Long: `Print the kubeconfig of a workload cluster: that of the Secret CLUSTER-kubeconfig, as clusterctl prints it. It is the
administrator's, a member of system:masters, whose rights end with the certificate and in no other way: it is for programs.

For daily work, --merge adds the cluster to the kubeconfig of kubectl (the first file of $KUBECONFIG, or ~/.kube/config) as context
slipway-CLUSTER, in other namespaces than "default" slipway-NAMESPACE/CLUSTER, and that context becomes the current one. Other contexts
stay as they are. Its credentials are yours: the workload cluster signs a certificate for your name, valid for some hours, in a group
that only this certificate has, and a ClusterRoleBinding gives the group the role. With --user they are another person's, and
are printed where --merge is not there. Delete the binding, whose name is printed, to revoke them; all of one person, whose name can
be the value of a label, with

  kubectl delete clusterrolebinding --selector slipway.dev/personal-user=NAME`,
		Example: `  slipway get kubeconfig demo --output-file demo.kubeconfig
  slipway kubectl --kubeconfig demo.kubeconfig get nodes
  slipway get kubeconfig demo --merge
  slipway get kubeconfig demo --user anna --role edit --valid 2h --output-file anna.kubeconfig`,
		Args: argument.One("CLUSTER"),
	}
	connection := management.Add(cmd.Flags())
	f.add(cmd.Flags())
	cmd.ValidArgsFunction = connection.CompleteCluster(e)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.check(cmd.Flags()); err != nil {
			return err
		}
		c, err := connection.Connect(e)
		if err != nil {
			return err
		}
		data, err := kubeconfig.Read(cmd.Context(), c.Client, client.ObjectKey{Namespace: c.Namespace, Name: args[0]})
		if known := fault.As(err); known != nil && known.Reason == kubeconfig.ReasonNotYet {
			return fault.New(known.Kind, known.Reason, "%s; `slipway describe cluster %s -n %s%s` shows how far it is", known.Message, args[0], c.Namespace, c.Again).From(err)
		}
		if err != nil {
			return c.Explain(err)
		}
		if f.isPersonal() {
			if data, err = f.personal(cmd.Context(), e, args[0], data); err != nil {
				return err
			}
		}
		switch {
		case f.merge:
			return merge(e, connection, contextName(c.Namespace, args[0]), data)
		case f.file != "":
			return write(f.file, data)
		}
		_, err = e.Out.Write(data)
		return err
	}
	return cmd
}

func (f *flags) add(set *pflag.FlagSet) {
	set.BoolVar(&f.merge, "merge", false, "add it to the kubeconfig of kubectl, with credentials of your own, and make it the current context")
	set.BoolVar(&f.admin, "admin", false, "with --merge: the administrator's credentials instead of your own")
	set.StringVar(&f.file, "output-file", "", "write it to this file, which others cannot read, instead of printing it")
	set.StringVar(&f.user, "user", "", "issue credentials to the person of this name (default with --merge: who you are on this machine)")
	set.StringVar(&f.role, "role", "cluster-admin", "with --user or --merge: ClusterRole of the workload cluster that the person gets")
	set.DurationVar(&f.valid, "valid", 8*time.Hour, "with --user or --merge: how long the credentials are valid, 10m to 168h")
}

// isPersonal reports whether the credentials are those of a person.
func (f *flags) isPersonal() bool { return f.user != "" || f.merge && !f.admin }

func (f *flags) check(set *pflag.FlagSet) error {
	switch {
	case f.merge && f.file != "":
		return fault.New(fault.Invalid, "Usage", "--merge and --output-file exclude each other: give one of them")
	case f.admin && (set.Changed("user") || set.Changed("role") || set.Changed("valid")):
		return fault.New(fault.Invalid, "Usage", "--admin is for the administrator's credentials, which no one issues: leave out --user, --role and --valid")
	case set.Changed("user") && f.user == "", !f.isPersonal() && (set.Changed("role") || set.Changed("valid")):
		return fault.New(fault.Invalid, "Usage", "--role and --valid are those of a person: name one with --user")
	}
	return nil
}

// personal issues credentials with those of the administrator.
func (f *flags) personal(ctx context.Context, e env.Env, cluster string, administrator []byte) ([]byte, error) {
	config, err := safe.Parse(administrator, policy.Configuration{})
	if err != nil {
		return nil, err
	}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	name := f.user
	if name == "" {
		if name, err = me(); err != nil {
			return nil, err
		}
	}
	issued, err := personal.Issue(ctx, api, personal.Request{User: name, Role: f.role, For: f.valid})
	if err != nil && f.user == "" {
		return nil, fault.New(fault.KindOf(err), personal.ReasonNotSigned,
			"no credentials for %s: %s; --admin merges the administrator's", name, fault.UserMessage(err)).From(err)
	}
	if err != nil {
		return nil, err
	}
	_, _ = fmt.Fprintf(e.Err, "Credentials of %s are valid until %s. To revoke them: kubectl delete clusterrolebinding %s\n",
		name, issued.Expires.UTC().Format(time.RFC3339), issued.Binding)
	return issued.Kubeconfig(config, cluster, name)
}

// me is who runs the command.
func me() (string, error) {
	current, err := user.Current()
	if err != nil {
		return "", fault.New(fault.Invalid, "Usage", "who you are on this machine is not known (%v): name yourself with --user", err).From(err)
	}
	return current.Username, nil
}

// write puts a kubeconfig into a file that only its owner can read, in the place of what was there.
func write(file string, data []byte) error {
	if _, err := datadir.WriteFile(file, data, 0o600); err != nil {
		return fault.New(fault.Invalid, ReasonNoFile, "%s cannot be written: %v", file, err).From(err)
	}
	return nil
}

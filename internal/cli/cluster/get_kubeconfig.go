package cluster

import (
	"context"
	"fmt"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/kubeconfig"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/workload"
)

// kubeconfigFlags holds the flags of "get kubeconfig". The command calls check, then read.
type kubeconfigFlags struct {
	merge      bool
	admin      bool
	management bool
	file       string
	user       string
	groups     []string
	role       string
	valid      time.Duration
}

const getKubeconfigHelp = `Print the kubeconfig of a workload cluster from Secret CLUSTER-kubeconfig, as clusterctl does. It is
for programs: it contains the credentials of an administrator in the group system:masters, which
cannot be revoked before the certificate expires.

For daily work, --merge adds the cluster to the kubeconfig of kubectl (the first file of
$KUBECONFIG, or ~/.kube/config) and makes it the current context. The context is named
slipway-CLUSTER, or slipway-NAMESPACE/CLUSTER if the namespace is not "default". Other contexts are
not changed. The credentials are personal: the manager issues a certificate for your name that is
valid for some hours. The certificate has a group of its own, and a ClusterRoleBinding in the
workload cluster grants the role to this group. You need the verb "connect" on the Cluster, but no
permission to read its Secrets. With --user, the credentials are for another user, and are printed
unless --merge is set.

To revoke the credentials, delete the ClusterRoleBinding, whose name is printed. To revoke all
credentials of a user whose name is a valid label value, run

  kubectl delete clusterrolebinding --selector slipway.dev/personal-user=NAME

With --management, the credentials are for the management cluster, for a user who works with
Clusters. The API server signs them, and RoleBindings that you create, for example to "view" or
"edit", grant permissions to the user and the groups.`

// GetKubeconfigCommand returns the get kubeconfig command, for package cli. Without flags, it prints the same as
// clusterctl.
func GetKubeconfigCommand(e term.Env) *cobra.Command {
	f := &kubeconfigFlags{}
	cmd := &cobra.Command{
		Use:   "kubeconfig CLUSTER",
		Short: "Print the kubeconfig of a cluster, or issue user credentials",
		Long:  getKubeconfigHelp,
		Example: `  slipway get kubeconfig demo --output-file demo.kubeconfig
  slipway kubectl --kubeconfig demo.kubeconfig get nodes
  slipway get kubeconfig demo --merge
  slipway get kubeconfig demo --user anna --role edit --valid 2h --output-file anna.kubeconfig
  slipway get kubeconfig --management --user anna --group team-a --output-file anna-management.kubeconfig`,
		Args: func(cmd *cobra.Command, args []string) error {
			if f.management {
				if len(args) > 0 {
					return fault.New(fault.Invalid, "Usage", "--management issues credentials for the management cluster, not for cluster %q: omit one of both", args[0])
				}
				return nil
			}
			return term.ExactlyOneArgument("CLUSTER")(cmd, args)
		},
	}
	connection := management.AddFlags(cmd.Flags())
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
		data, err := f.read(cmd.Context(), e, c, strings.Join(args, ""))
		if err != nil {
			return c.Explain(err)
		}
		switch {
		case f.merge:
			return mergeKubeconfig(e, connection, contextName(c.Namespace, args[0]), data)
		case f.file != "":
			return writeKubeconfig(f.file, data)
		}
		_, err = e.Out.Write(data)
		return err
	}
	return cmd
}

// read returns the kubeconfig that the flags select.
func (f *kubeconfigFlags) read(ctx context.Context, e term.Env, c *management.Connection, cluster string) ([]byte, error) {
	if f.management {
		return f.ofManagement(ctx, e, c)
	}
	if f.isPersonal() {
		return f.personal(ctx, e, c, cluster)
	}
	return adminKubeconfig(ctx, c, cluster)
}

// adminKubeconfig returns the kubeconfig that the control plane provider created.
func adminKubeconfig(ctx context.Context, c *management.Connection, cluster string) ([]byte, error) {
	data, err := kubeconfig.ReadKubeconfig(ctx, c.Client, c.Key(cluster))
	if known := fault.As(err); known != nil && known.Reason == kubeconfig.ReasonNotYet {
		return nil, fault.New(known.Kind, known.Reason, "%s; `slipway describe cluster %s -n %s%s` shows how far it is", known.Message, cluster, c.Namespace, c.RepeatFlags).From(err)
	}
	return data, err
}

func (f *kubeconfigFlags) add(set *pflag.FlagSet) {
	set.BoolVar(&f.merge, "merge", false, "add the cluster with personal credentials to the kubeconfig of kubectl, and make it the current context")
	set.BoolVar(&f.admin, "admin", false, "with --merge: use the administrator credentials instead of personal credentials")
	set.StringVar(&f.file, "output-file", "", "file to write to instead of standard output; other users cannot read it")
	set.BoolVar(&f.management, "management", false, "with --user: issue credentials for the management cluster; bind roles in it to grant permissions")
	set.StringSliceVar(&f.groups, "group", nil, "with --user or --merge: group of the user; may be repeated")
	set.StringVar(&f.user, "user", "", "issue credentials to the user with this name (default with --merge: your user name on this machine)")
	set.StringVar(&f.role, "role", "cluster-admin", "with --user or --merge: ClusterRole of the user in the workload cluster; empty: only the permissions of the groups")
	set.DurationVar(&f.valid, "valid", 8*time.Hour, "with --user or --merge: validity of the credentials, 10m to 168h")
}

// isPersonal reports whether to issue credentials for one user.
func (f *kubeconfigFlags) isPersonal() bool { return f.user != "" || f.merge && !f.admin }

func (f *kubeconfigFlags) check(set *pflag.FlagSet) error {
	switch {
	case f.management && (f.user == "" || f.merge || f.admin || set.Changed("role")):
		return fault.New(fault.Invalid, "Usage", "--management requires --user, and supports --group, --valid and --output-file: RoleBindings in the management cluster grant the user permissions")
	case f.merge && f.file != "":
		return fault.New(fault.Invalid, "Usage", "--merge and --output-file are mutually exclusive")
	case f.admin && (set.Changed("user") || set.Changed("role") || set.Changed("group") || set.Changed("valid")):
		return fault.New(fault.Invalid, "Usage", "--admin prints the existing administrator credentials and cannot be used with --user, --group, --role or --valid")
	case set.Changed("user") && f.user == "", !f.isPersonal() && (set.Changed("role") || set.Changed("group") || set.Changed("valid")):
		return fault.New(fault.Invalid, "Usage", "--role, --group and --valid require --user")
	}
	return nil
}

// personal issues credentials of a workload cluster: through the manager, or with the administrator's kubeconfig if the
// manager does not support it.
func (f *kubeconfigFlags) personal(ctx context.Context, e term.Env, c *management.Connection, cluster string) ([]byte, error) {
	r, err := f.request()
	if err != nil {
		return nil, err
	}
	api, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	key := c.Key(cluster)
	var server *rest.Config
	issued, err := kubeconfig.RequestFrom(ctx, api, key, r)
	if err != nil && !isFinal(err) {
		var again error
		if issued, server, again = issueAsAdmin(ctx, c, cluster, r); again == nil || !apierrors.IsForbidden(again) {
			err = again
		}
	}
	if err != nil && f.user == "" {
		return nil, fault.New(fault.KindOf(err), kubeconfig.ReasonNotSigned,
			"no credentials for %s: %s; --admin merges the administrator's", r.User, fault.UserMessage(err)).From(err)
	}
	if err != nil {
		return nil, err
	}
	f.report(e, r, issued)
	return issued.Kubeconfig(server, cluster, r.User)
}

// isFinal reports whether the manager or the command rejected the request, in which case the administrator's kubeconfig
// must not be used instead.
func isFinal(err error) bool {
	known := fault.As(err)
	return known != nil && known.Reason != kubeconfig.ReasonNotHandled
}

// issueAsAdmin issues credentials with the administrator's kubeconfig, for management clusters whose manager issues
// none.
func issueAsAdmin(ctx context.Context, c *management.Connection, cluster string, r kubeconfig.CredentialsRequest) (kubeconfig.Credentials, *rest.Config, error) {
	data, err := adminKubeconfig(ctx, c, cluster)
	if err != nil {
		return kubeconfig.Credentials{}, nil, err
	}
	config, err := workload.ParseKubeconfig(data, policy.Configuration{})
	if err != nil {
		return kubeconfig.Credentials{}, nil, err
	}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return kubeconfig.Credentials{}, nil, err
	}
	issued, err := kubeconfig.Issue(ctx, api, r)
	return issued, config, err
}

// ofManagement issues credentials of the management cluster.
func (f *kubeconfigFlags) ofManagement(ctx context.Context, e term.Env, c *management.Connection) ([]byte, error) {
	r, err := f.request()
	if err != nil {
		return nil, err
	}
	r.Role = ""
	api, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	issued, err := kubeconfig.IssueManagement(ctx, api, r)
	if err != nil {
		return nil, err
	}
	f.report(e, r, issued)
	return issued.Kubeconfig(c.Config, "management", r.User)
}

// request returns the credential request from the flags. The default user is the current user of this machine.
func (f *kubeconfigFlags) request() (kubeconfig.CredentialsRequest, error) {
	r := kubeconfig.CredentialsRequest{User: f.user, Groups: f.groups, Role: f.role, Validity: f.valid}
	if r.User != "" {
		return r, nil
	}
	var err error
	r.User, err = currentUser()
	return r, err
}

// report prints the expiry of credentials, and how to revoke them.
func (f *kubeconfigFlags) report(e term.Env, r kubeconfig.CredentialsRequest, issued kubeconfig.Credentials) {
	end := "Role bindings there grant permissions to the user and the groups: delete them to revoke the credentials"
	if f.management {
		end = "Delete the RoleBindings of the user to revoke them: `kubectl get rolebindings,clusterrolebindings -A -o wide` lists them"
	}
	if issued.Binding != "" {
		end = "To revoke them: kubectl delete clusterrolebinding " + issued.Binding
	}
	_, _ = fmt.Fprintf(e.Err, "Credentials of %s are valid until %s. %s\n", r.User, issued.Expires.UTC().Format(time.RFC3339), end)
}

// currentUser returns the name of the current user.
func currentUser() (string, error) {
	current, err := user.Current()
	if err != nil {
		return "", fault.New(fault.Invalid, "Usage", "who you are on this machine is not known (%v): name yourself with --user", err).From(err)
	}
	return current.Username, nil
}

// writeKubeconfig writes a kubeconfig to a file that only its owner can read, and replaces an existing file.
func writeKubeconfig(file string, data []byte) error {
	if _, err := datadir.WriteFile(file, data, 0o600); err != nil {
		return fault.New(fault.Invalid, reasonNoFile, "%s cannot be written: %v", file, err).From(err)
	}
	return nil
}

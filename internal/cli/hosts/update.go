package hosts

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// updateFlags are the flags of "hosts update". Empty fields change nothing.
type updateFlags struct {
	address, nodeAddress, user, keyFile, certificateFile string
	port                                                 int
	hostKeys                                             []string
	sudo, rescan, yes, noCheck, split                    bool
	// isSudoSet is true if the flag sudo is set.
	isSudoSet bool
}

// updateCommand returns the "hosts update" command, for [Command].
func updateCommand(e term.Env) *cobra.Command {
	var f updateFlags
	cmd := &cobra.Command{
		Use:   "update NAME",
		Short: "Change the address, the credentials or the pinned keys of a host",
		Long: `Change how a host is reached: another private key, other host keys, another address or user. The
node on the host is not touched, and keeps its IP address unless --node-address corrects it. The
command first connects with the new settings and checks that the host is the same one: a host in use
must have the record of its machine. Nothing is changed if the check fails.

If other hosts have their credentials in the same Secret, new ones apply to all of them, and the
command asks before. With --split, this host gets a Secret of its own, and the others keep theirs.`,
		Example: `  slipway hosts update rack1-1 --key new.key
  slipway hosts update rack1-1 --key new.key --split
  slipway hosts update rack1-1 --rescan
  slipway hosts update rack1-1 --address 192.0.2.99`,
		Args: term.ExactlyOneArgument("NAME"),
	}
	connection := management.AddFlags(cmd.Flags())
	flags := cmd.Flags()
	flags.StringVar(&f.address, "address", "", "new address")
	flags.StringVar(&f.nodeAddress, "node-address", "", "IP address of the node, if it differs from the address; required for a DNS name")
	flags.IntVar(&f.port, "port", 0, "new port")
	flags.StringVar(&f.user, "user", "", "new user")
	flags.BoolVar(&f.sudo, "sudo", false, "become root with sudo (default: unchanged; with --user, for users other than root)")
	flags.StringVar(&f.keyFile, "key", "", "file with the new private key")
	flags.StringVar(&f.certificateFile, "certificate", "", "file with the new certificate")
	flags.StringArrayVar(&f.hostKeys, "host-key", nil, "host key to pin instead of the current ones; can be repeated")
	flags.BoolVar(&f.rescan, "rescan", false, "scan the host keys, and pin them instead of the current ones after confirmation")
	flags.BoolVarP(&f.yes, "yes", "y", false, "skip the confirmation prompts, and print what is pinned or changed")
	flags.BoolVar(&f.noCheck, "no-check", false, "do not connect before the objects are changed")
	flags.BoolVar(&f.split, "split", false, "give the host a Secret of its own if it shares the credentials with other hosts")
	cmd.MarkFlagsMutuallyExclusive("host-key", "rescan")
	cmd.MarkFlagsOneRequired("address", "node-address", "port", "user", "sudo", "key", "certificate", "host-key", "rescan")
	cmd.RunE = connection.RunE(e, func(ctx context.Context, c *management.Connection, args []string) error {
		f.isSudoSet = flags.Changed("sudo")
		host, err := getHost(ctx, c, args[0])
		if err != nil {
			return err
		}
		return f.run(ctx, e, c, host)
	})
	return cmd
}

// run changes the host and its Secret in memory, connects with the result, and writes the Secret before the SSHHost.
func (f updateFlags) run(ctx context.Context, e term.Env, c *management.Connection, host *infrav1.SSHHost) error {
	secret := &corev1.Secret{}
	if err := c.Client.Get(ctx, c.Key(host.Spec.CredentialsRef.Name), secret); err != nil {
		return err
	}
	oldHost, oldSecret := host.DeepCopy(), secret.DeepCopy()
	if err := f.apply(host, secret, e.Getenv("HOME")); err != nil {
		return err
	}
	pool := remote.NewPool(remote.Limits{})
	defer pool.Close()
	// The new Secret is not in the cluster yet, so the target is made from the old one and changed.
	target, err := inventory.Target(ctx, c.Client, host, policy.Configuration{})
	if err != nil {
		return err
	}
	target.PrivateKey, target.Certificate = secret.Data["ssh-privatekey"], secret.Data["ssh-certificate"]
	if target.Jump != nil && host.Spec.Jump.CredentialsRef == host.Spec.CredentialsRef && !f.split {
		target.Jump.PrivateKey, target.Jump.Certificate = target.PrivateKey, target.Certificate
	}
	if f.rescan {
		if target.HostKeys, err = scan(ctx, e, pool, target, f.yes); err != nil {
			return err
		}
		host.Spec.HostKeys = target.HostKeys
	}
	if !f.noCheck {
		if err := checkSame(ctx, pool, target, host); err != nil {
			return err
		}
	}
	if f.keyFile != "" || f.certificateFile != "" {
		if err := f.writeCredentials(ctx, e, c, credentials{host: host, stored: oldSecret, data: secret.Data}); err != nil {
			return err
		}
	}
	w := kube.NewWriter(c.Client, writer)
	if err := w.PatchOwned(ctx, oldHost, func(o client.Object) {
		if h, ok := o.(*infrav1.SSHHost); ok {
			h.Spec = host.Spec
		}
	}); err != nil {
		return err
	}
	if host.Spec.NodeAddress != oldHost.Spec.NodeAddress {
		_, _ = fmt.Fprintf(e.Err, "The IP address of the node on host %s is %s (spec.nodeAddress).\n", host.Name, host.Spec.NodeAddress)
	}
	_, err = fmt.Fprintf(e.Out, "SSHHost %s/%s updated\n", host.Namespace, host.Name)
	return err
}

// credentials are the new credentials of a host, and the Secret with the current ones.
type credentials struct {
	host   *infrav1.SSHHost
	stored *corev1.Secret
	data   map[string][]byte
}

// writeCredentials writes the credentials to the Secret of the host, or with --split to a new one to which the host
// then refers. If other hosts use the Secret, the user has to confirm that their credentials change, too.
func (f updateFlags) writeCredentials(ctx context.Context, e term.Env, c *management.Connection, n credentials) error {
	others, err := sharers(ctx, c, n.host)
	if err != nil {
		return err
	}
	if len(others) > 0 && f.split {
		return splitSecret(ctx, c, n)
	}
	if len(others) > 0 {
		_, _ = fmt.Fprintf(e.Err, "Secret %s also has the credentials of %s. Use --split to change only SSHHost %s.\n", n.stored.Name, condition.Names(others), n.host.Name)
		if !f.yes {
			if err := e.Confirm("change the credentials of all of them"); err != nil {
				return err
			}
		}
	}
	return kube.NewWriter(c.Client, writer).Patch(ctx, n.stored, func(o client.Object) {
		if s, ok := o.(*corev1.Secret); ok {
			s.Data = n.data
		}
	})
}

// sharers describes the other servers that have their credentials in the Secret of a host: other hosts, and the jump
// hosts of all.
func sharers(ctx context.Context, c *management.Connection, host *infrav1.SSHHost) ([]string, error) {
	all := &infrav1.SSHHostList{}
	if err := c.Client.List(ctx, all, client.InNamespace(host.Namespace)); err != nil {
		return nil, err
	}
	var out []string
	for _, h := range all.Items {
		if h.Spec.CredentialsRef == host.Spec.CredentialsRef && h.Name != host.Name {
			out = append(out, "SSHHost "+h.Name)
		}
		if h.Spec.Jump != nil && h.Spec.Jump.CredentialsRef == host.Spec.CredentialsRef {
			out = append(out, "the jump host of SSHHost "+h.Name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// splitSecret creates a Secret with the credentials of only this host. Its name has a random suffix, so that it
// replaces no other. run writes the reference to it with the SSHHost.
func splitSecret(ctx context.Context, c *management.Connection, n credentials) error {
	secret := newHost{entry: entry{Name: n.host.Name}}.secrets(n.host.Namespace)[0]
	secret.Name, secret.GenerateName, secret.Data = "", n.host.Name+"-ssh-", n.data
	secret.OwnerReferences = ownerOf(n.host)
	if err := kube.NewWriter(c.Client, writer).Create(ctx, secret); err != nil {
		return err
	}
	n.host.Spec.CredentialsRef.Name = secret.Name
	return nil
}

// apply sets the fields that the flags change.
func (f updateFlags) apply(host *infrav1.SSHHost, secret *corev1.Secret, home string) error {
	if err := f.applyAddress(host); err != nil {
		return err
	}
	if f.port != 0 {
		host.Spec.Port = int32(min(f.port, 1<<16))
	}
	f.applyUser(host)
	if len(f.hostKeys) > 0 {
		host.Spec.HostKeys = f.hostKeys
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for key, file := range map[string]string{"ssh-privatekey": f.keyFile, "ssh-certificate": f.certificateFile} {
		if file == "" {
			continue
		}
		data, err := readKeyFile(file, home)
		if err != nil {
			return err
		}
		secret.Data[key] = data
	}
	if f.keyFile != "" && f.certificateFile == "" {
		delete(secret.Data, "ssh-certificate") // it was issued for the previous key
	}
	return nil
}

// applyUser sets the user and the use of sudo. Without --sudo, a new user gets the default only if the previous one had it,
// so that the choice of another setting in `slipway hosts add` remains.
func (f updateFlags) applyUser(host *infrav1.SSHHost) {
	hadDefault := host.Spec.Sudo == defaultSudo(host.Spec.User)
	if f.user != "" {
		host.Spec.User = f.user
	}
	switch {
	case f.isSudoSet && f.sudo:
		host.Spec.Sudo = infrav1.SSHSudoAlways
	case f.isSudoSet:
		host.Spec.Sudo = infrav1.SSHSudoNever
	case f.user != "" && hadDefault:
		host.Spec.Sudo = defaultSudo(f.user)
	}
}

// defaultSudo returns the use of sudo for a user.
func defaultSudo(user string) infrav1.SSHSudo {
	if user == "root" {
		return infrav1.SSHSudoNever
	}
	return infrav1.SSHSudoAlways
}

// applyAddress sets the addresses. The IP address of a node must not change: for a claimed host, it is written to
// spec.nodeAddress unless --node-address corrects it.
func (f updateFlags) applyAddress(host *infrav1.SSHHost) error {
	if before := inventory.NodeAddress(host); f.address != "" {
		if host.Status.Claim != nil {
			host.Spec.NodeAddress = before
		}
		host.Spec.Address = f.address
	}
	if f.nodeAddress != "" {
		host.Spec.NodeAddress = f.nodeAddress
	}
	if _, err := netip.ParseAddr(inventory.NodeAddress(host)); err != nil && (f.address != "" || f.nodeAddress != "") {
		return fault.New(fault.Invalid, reasonUsage, "SSHHost %s needs the IP address of its node: provide it with --node-address", host.Name)
	}
	return nil
}

// checkSame connects and checks that a host in use is still the same machine. Its record, a file on the host, must have
// the ID of the claim.
func checkSame(ctx context.Context, pool *remote.Pool, t remote.Target, host *infrav1.SSHHost) error {
	connected, err := pool.Connect(ctx, t)
	if f := fault.As(err); f != nil && f.Reason == remote.ReasonHostKeyMismatch {
		return fault.New(f.Kind, f.Reason, "%s; use --rescan to compare and pin the keys that it presents now", f.Message).From(err)
	}
	if err != nil {
		return err
	}
	record, err := connected.ReadRecord(ctx)
	if err != nil || !inventory.IsConfirmed(host) {
		return err
	}
	if record == nil || record.ClaimID != host.Status.Claim.ClaimID {
		return fault.New(fault.Invalid, "OtherMachine", "the machine at %s does not have the record of SSHMachine %s, so it is another machine than SSHHost %s; nothing was changed", t.Address, machineOf(host), host.Name)
	}
	return nil
}

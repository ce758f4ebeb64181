package hosts

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// addFlags are the flags of "hosts add". The embedded entry is the host of the command line, or contains the defaults
// for a file with hosts.
type addFlags struct {
	entry
	sudo, yes, noCheck bool
	file               string
}

// addCommand returns the "hosts add" command, for [Command].
func addCommand(e term.Env) *cobra.Command {
	var f addFlags
	cmd := &cobra.Command{
		Use:   "add [ADDRESS]",
		Short: "Add a machine that is reachable over SSH to the inventory",
		Long: `Add a machine to the inventory. The command reads the host keys of the machine's SSH server, shows
their fingerprints, and pins them after you have confirmed them. Compare them with the output of
"ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub" on the console of the machine: a scan over the
network proves nothing. With --host-key, nothing is scanned and nothing is asked. Then the command
logs in, and creates an SSHHost and a Secret with the private key.

A file with hosts (-f) contains a list "hosts" and optional "defaults", with the fields address,
name, nodeAddress, port, user, keyFile, certificateFile, hostKeys, jump, jumpKeyFile, jumpHostKeys, sudo,
failureDomain, offeredTo and labels. Flags are further defaults. If some hosts cannot be added, the
others are, and the command reports the failures. Run it again after you have corrected the causes:
hosts that exist as requested remain unchanged.`,
		Example: `  slipway hosts add 192.0.2.11 --user root --key ~/.ssh/id_ed25519
  slipway hosts add 192.0.2.12 --user ops --key fleet.key --label rack=a --failure-domain rack-a
  slipway hosts add -f hosts.yaml --yes`,
		Args: cobra.MaximumNArgs(1),
	}
	connection := management.AddFlags(cmd.Flags())
	flags := cmd.Flags()
	flags.StringVarP(&f.file, "file", "f", "", "file with hosts to add")
	flags.StringVar(&f.Name, "name", "", "name of the SSHHost (default: derived from the address)")
	flags.IntVar(&f.Port, "port", 22, "port of the SSH server")
	flags.StringVar(&f.User, "user", "root", "user to log in as")
	flags.StringVar(&f.KeyFile, "key", "", "file with the private key, without a passphrase")
	flags.StringVar(&f.CertificateFile, "certificate", "", "file with an OpenSSH certificate for the key")
	flags.StringArrayVar(&f.HostKeys, "host-key", nil, "host key to pin, such as \"ssh-ed25519 AAAA…\"; can be repeated")
	flags.StringVar(&f.Jump, "jump", "", "jump host as USER@HOST:PORT")
	flags.StringVar(&f.JumpKeyFile, "jump-key", "", "file with the private key for the jump host (default: --key)")
	flags.StringArrayVar(&f.JumpHostKeys, "jump-host-key", nil, "host key of the jump host to pin; can be repeated")
	flags.BoolVar(&f.sudo, "sudo", false, "become root with sudo (default: for users other than root)")
	flags.StringVar(&f.NodeAddress, "node-address", "", "IP address of the node, if it differs from ADDRESS; required for a DNS name")
	flags.StringVar(&f.FailureDomain, "failure-domain", "", "failure domain of the host, such as its rack")
	flags.StringVar(&f.OfferedTo, "offer-to", "", "labels of the namespaces that can use the host, or \"all\" (default: its own namespace)")
	flags.StringToStringVar(&f.Labels, "label", nil, "label of the SSHHost; can be repeated")
	flags.BoolVarP(&f.yes, "yes", "y", false, "pin the scanned host keys without a prompt, and print them")
	flags.BoolVar(&f.noCheck, "no-check", false, "do not log in before the objects are created")
	cmd.RunE = connection.RunE(e, func(ctx context.Context, c *management.Connection, args []string) error {
		if flags.Changed("sudo") {
			f.Sudo = &f.sudo
		}
		entries, err := f.entries(args)
		if err != nil {
			return err
		}
		return addHosts(ctx, e, c, adding{entries: entries, yes: f.yes, noCheck: f.noCheck})
	})
	return cmd
}

// entries returns the hosts to add, complete and valid. It sends no request, so an invalid file adds no host.
func (f addFlags) entries(args []string) ([]entry, error) {
	var entries []entry
	switch {
	case f.file != "" && len(args) > 0, f.file == "" && len(args) == 0:
		return nil, fault.New(fault.Invalid, reasonUsage, "provide either an address, or a file with hosts (-f)")
	case f.file != "" && (f.Name != "" || f.NodeAddress != "" || len(f.HostKeys) > 0):
		return nil, fault.New(fault.Invalid, reasonUsage, "--name, --node-address and --host-key are for one host; set name, nodeAddress and hostKeys in the file with hosts")
	case f.file != "":
		file, err := os.Open(f.file)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		text, err := io.ReadAll(io.LimitReader(file, maxInventory))
		if err != nil {
			return nil, err
		}
		if entries, err = parseInventory(text); err != nil {
			return nil, err
		}
		for i := range entries {
			entries[i] = entries[i].withDefaults(f.entry)
		}
	default:
		f.Address = args[0]
		entries = []entry{f.entry}
	}
	names := map[string]string{}
	for i := range entries {
		var err error
		if entries[i], err = entries[i].complete(); err != nil {
			return nil, err
		}
		name := entries[i].Name
		if other, ok := names[name]; ok {
			return nil, fault.New(fault.Invalid, reasonUsage, "hosts %s and %s would have the same name %s: set one with name", other, entries[i].Address, name)
		}
		names[name] = entries[i].Address
	}
	return entries, nil
}

// adding describes the hosts to add. addHosts sets pool.
type adding struct {
	entries      []entry
	yes, noCheck bool
	pool         *remote.Pool
}

// addHosts adds all hosts that can be added, and reports the others.
func addHosts(ctx context.Context, e term.Env, c *management.Connection, a adding) error {
	c.WarnIgnoredKubeconfig(e)
	a.pool = remote.NewPool(remote.Limits{})
	defer a.pool.Close()
	var failed []string
	for _, entry := range a.entries {
		err := addHost(ctx, e, c, a, entry)
		switch {
		case err == nil:
		case len(a.entries) == 1, ctx.Err() != nil:
			return err
		default:
			_, _ = fmt.Fprintf(e.Err, "%s: %v\n", entry.Name, err)
			failed = append(failed, entry.Name)
		}
	}
	if len(failed) > 0 {
		return fault.New(fault.Invalid, reasonNotAdded, "%d of %d hosts were not added: %s; correct the causes above and run the command again, which leaves the other hosts unchanged",
			len(failed), len(a.entries), condition.Names(failed))
	}
	return nil
}

// addHost adds one host, or compares an existing one. It pins the host keys and logs in before create writes the
// objects.
func addHost(ctx context.Context, e term.Env, c *management.Connection, a adding, entry entry) error {
	host, err := entry.read(e.Getenv("HOME"))
	if err != nil {
		return err
	}
	existing := &infrav1.SSHHost{}
	if err := c.Client.Get(ctx, c.Key(host.Name), existing); err == nil {
		return compare(ctx, e, c, existing, host)
	} else if !apierrors.IsNotFound(err) {
		return err
	}
	if err := pin(ctx, e, a.pool, &host, a.yes); err != nil {
		return err
	}
	if !a.noCheck {
		if err := introduce(ctx, e, a.pool, host); err != nil {
			return err
		}
	}
	return create(ctx, e, c, host)
}

// compare reports a host that exists as requested as unchanged, so that "hosts add" can be repeated. An earlier command
// that was interrupted may not have made it the owner of its Secrets.
func compare(ctx context.Context, e term.Env, c *management.Connection, existing *infrav1.SSHHost, h newHost) error {
	if len(h.HostKeys) == 0 {
		h.HostKeys = existing.Spec.HostKeys
	}
	if existing.Spec.Jump != nil && len(h.JumpHostKeys) == 0 {
		h.JumpHostKeys = existing.Spec.Jump.HostKeys
	}
	requested, err := h.object(c.Namespace)
	if err != nil {
		return err
	}
	isEqual := equalHosts(existing, requested)
	for _, s := range h.secrets(c.Namespace) {
		current := &corev1.Secret{}
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(s), current); client.IgnoreNotFound(err) != nil {
			return err
		}
		isEqual = isEqual && equality.Semantic.DeepEqual(current.Data, s.Data)
	}
	if !isEqual {
		return fault.New(fault.Conflict, "HostExists", "SSHHost %s/%s exists with other settings or credentials; change it with \"slipway hosts update %[2]s\", or use --name", c.Namespace, h.Name)
	}
	for _, s := range h.secrets(c.Namespace) {
		if err := ownSecret(ctx, c.Client, existing, s); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(e.Out, "SSHHost %s/%s unchanged\n", c.Namespace, h.Name)
	return err
}

// equalHosts reports whether an SSHHost has the requested labels, and the requested settings as far as the command can
// set them. A new field of the spec that the command does not set must be copied here.
func equalHosts(existing, requested *infrav1.SSHHost) bool {
	for key, value := range requested.Labels {
		if existing.Labels[key] != value {
			return false
		}
	}
	spec := requested.Spec
	spec.Reuse, spec.Maintenance, spec.Interruptible, spec.Settings = existing.Spec.Reuse, existing.Spec.Maintenance, existing.Spec.Interruptible, existing.Spec.Settings
	return equality.Semantic.DeepEqual(existing.Spec, spec)
}

// pin fills in the host keys: those of the jump host first, because the scan of the host goes through it.
func pin(ctx context.Context, e term.Env, pool *remote.Pool, h *newHost, yes bool) error {
	target, err := h.target()
	if err != nil {
		return err
	}
	if target.Jump != nil && len(h.JumpHostKeys) == 0 {
		if h.JumpHostKeys, err = scan(ctx, e, pool, *target.Jump, yes); err != nil {
			return err
		}
		if target, err = h.target(); err != nil {
			return err
		}
	}
	if len(h.HostKeys) == 0 {
		h.HostKeys, err = scan(ctx, e, pool, target, yes)
	}
	return err
}

// scan returns the host keys of a server after the user has confirmed them. "hosts update --rescan" calls it, too.
func scan(ctx context.Context, e term.Env, pool *remote.Pool, t remote.Target, yes bool) ([]string, error) {
	keys, err := pool.ScanHostKeys(ctx, t)
	if err != nil {
		return nil, err
	}
	text, err := fingerprints(keys)
	if err != nil {
		return nil, err
	}
	if yes {
		_, _ = fmt.Fprintf(e.Err, "Pinned host keys of %s:\n%s", t.Address, text)
		return keys, nil
	}
	_, _ = fmt.Fprintf(e.Err, "Host keys of %s:\n%sCompare them with \"ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub\" on the machine.\n", t.Address, text)
	return keys, e.Confirm("pin these host keys")
}

// introduce logs in with the pinned keys, and prints the system of the host. addHost calls it before create, so that
// wrong credentials are found before anything is written.
func introduce(ctx context.Context, e term.Env, pool *remote.Pool, h newHost) error {
	target, err := h.target()
	if err != nil {
		return err
	}
	host, err := pool.Connect(ctx, target)
	if err != nil {
		return err
	}
	facts, err := host.Facts(ctx)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(e.Err, "%s: %s, %s, %d CPUs, %d MiB\n", h.Address, facts.OSImage, facts.Architecture, facts.CPUs, facts.MemoryMiB)
	return nil
}

// writer is the name for [kube.NewWriter] in this package; the field manager is "slipway-hosts".
const writer = "hosts"

// create creates the objects of a host. Secrets come first, so that the controller never finds an SSHHost without them,
// but only after the API server has accepted the SSHHost.
func create(ctx context.Context, e term.Env, c *management.Connection, h newHost) error {
	object, err := h.object(c.Namespace)
	if err != nil {
		return err
	}
	if err := kube.NewWriter(client.NewDryRunClient(c.Client), writer).Create(ctx, object.DeepCopy()); err != nil {
		return err
	}
	w := kube.NewWriter(c.Client, writer)
	secrets := h.secrets(c.Namespace)
	for _, s := range secrets {
		if err := createSecret(ctx, c.Client, s); err != nil {
			return err
		}
	}
	if err := w.Create(ctx, object); err != nil {
		return err
	}
	for _, s := range secrets {
		if err := ownSecret(ctx, c.Client, object, s); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(e.Out, "SSHHost %s/%s created\n", object.Namespace, object.Name)
	return err
}

// createSecret creates a Secret, or replaces the data of one that "hosts add" created for the same host.
func createSecret(ctx context.Context, c client.Client, s *corev1.Secret) error {
	w := kube.NewWriter(c, writer)
	existing := &corev1.Secret{}
	err := c.Get(ctx, client.ObjectKeyFromObject(s), existing)
	switch {
	case apierrors.IsNotFound(err):
		return w.Create(ctx, s)
	case err != nil:
		return err
	case existing.Labels[ownedLabel] != s.Labels[ownedLabel]:
		return fault.New(fault.Conflict, "SecretExists", "Secret %s/%s exists and was not created by \"slipway hosts add\"; delete it, or use --name", s.Namespace, s.Name)
	}
	return w.Patch(ctx, existing, func(o client.Object) {
		if secret, ok := o.(*corev1.Secret); ok {
			secret.Data = s.Data
		}
	})
}

// ownSecret makes the SSHHost the owner of its Secret, so that the Secret is moved and deleted with it.
func ownSecret(ctx context.Context, c client.Client, host *infrav1.SSHHost, s *corev1.Secret) error {
	current := &corev1.Secret{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(s), current); err != nil {
		return err
	}
	return kube.NewWriter(c, writer).Patch(ctx, current, func(o client.Object) {
		o.SetOwnerReferences(ownerOf(host))
	})
}

// ownerOf returns the owner reference to an SSHHost, also for the Secret that "hosts update --split" creates.
func ownerOf(host *infrav1.SSHHost) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: infrav1.GroupVersion.String(), Kind: "SSHHost", Name: host.Name, UID: host.UID}}
}

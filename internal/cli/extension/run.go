package extension

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/extensiontools"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/extension/recording"
)

// runCommand returns the extension run command, for [Command].
func runCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run -- COMMAND [ARGUMENTS]",
		Short: "Run an extension, register it and show every call",
		Long: `Start an extension, register it with the management cluster, and show every call until you press
Ctrl-C. Then the registration is removed and the extension is stopped.

The extension reads its address and certificate from environment variables: EXTENSION_ADDRESS
(host:port), EXTENSION_PORT, EXTENSION_CERT_FILE and EXTENSION_KEY_FILE (PEM). This command issues
the certificate, and the management cluster calls the extension through a proxy in this process.
KUBECONFIG is removed from the environment because an extension needs no access to the management
cluster.

With --watch, the extension is restarted when a file changes. Calls go to the previous process until
the new process is ready, or as long as the new process does not start. After the restart, the
extension is rediscovered. Hidden files, recordings and programs are not watched.`,
		Example: `  slipway extension run -- go run .
  slipway extension run --watch -- go run .
  slipway extension run --name quota --namespace team-a -- python3 extension.py`,
	}
	o := addSessionFlags(cmd, e)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return o.Run(cmd, args, nil) }
	return cmd
}

// fileCheckInterval is the interval of file checks with --watch. A change is reported once the files are unchanged for
// one interval, which is longer than the time between the writes of an editor.
const fileCheckInterval = 300 * time.Millisecond

// sessionOptions holds the flags of "extension run" and "record", which run a session: the extension is started,
// registered with the management cluster, and unregistered at the end.
type sessionOptions struct {
	env        term.Env
	connection *management.Flags
	name, host string
	namespace  string
	settings   map[string]string
	within     time.Duration
	watch      bool
	ready      bool
}

// addSessionFlags adds the flags of a session to a command. runCommand and recordCommand call it.
func addSessionFlags(cmd *cobra.Command, e term.Env) *sessionOptions {
	o := &sessionOptions{env: e, connection: management.AddClusterScopedFlags(cmd.Flags())}
	f := cmd.Flags()
	f.StringVar(&o.name, "name", "", "name of the registration (default: the name of the current directory)")
	f.StringVar(&o.host, "host", "", "host name or address at which the management cluster reaches this machine (default 127.0.0.1)")
	f.StringVarP(&o.namespace, "namespace", "n", "", "namespace of the objects that the extension is called for (default: all)")
	f.StringToStringVar(&o.settings, "setting", nil, "`NAME=VALUE` to add to the settings of every request; may be repeated")
	f.DurationVar(&o.within, "start-timeout", 3*time.Minute, "how long the extension may take to start, including compilation")
	f.BoolVar(&o.watch, "watch", false, "restart the extension with the same registration when a file below the current directory changes")
	return o
}

// Run runs a session until the context of the command is done. If record is set, it receives every call. "extension
// run" calls it without record.
func (o *sessionOptions) Run(cmd *cobra.Command, args []string, record func(recording.Call) error) error {
	name, err := o.nameOf()
	if err != nil {
		return err
	}
	c, err := o.connection.Connect(o.env)
	if err != nil {
		return err
	}
	var changed <-chan struct{}
	if o.watch {
		tick := time.NewTicker(fileCheckInterval)
		defer tick.Stop()
		changed = extensiontools.FileChanges(cmd.Context(), ".", tick.C)
	}
	lines := &printer{out: o.env.Out, record: record, reportError: o.printProgress}
	err = extensiontools.RunSession(cmd.Context(), c.Client, extensiontools.SessionOptions{
		Process: extensiontools.LocalOptions{Command: args, Environment: os.Environ(), Out: o.env.Err, Within: o.within},
		Local:   extensiontools.LocalRegistration{Name: name, Namespace: o.namespace, Settings: o.settings},
		Host:    o.host, Now: o.env.Now, Progress: o.printProgress, Observe: lines.call, Discovered: o.discovered, Changed: changed,
	})
	return c.Explain(err)
}

var invalidNameCharacters = regexp.MustCompile(`[^a-z0-9]+`)

func (o *sessionOptions) nameOf() (string, error) {
	if o.name != "" {
		return o.name, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the current folder: %w", err)
	}
	name := strings.Trim(invalidNameCharacters.ReplaceAllString(strings.ToLower(filepath.Base(dir)), "-"), "-")
	if name == "" {
		return "", fault.New(fault.Invalid, "Usage", "no name can be derived from the folder %s; set the name of the registration with --name", dir)
	}
	return name, nil
}

func (o *sessionOptions) printProgress(line string) { _, _ = fmt.Fprintln(o.env.Err, line) }

// discovered prints the handlers. The session calls it after each discovery, with --watch after each restart as well.
func (o *sessionOptions) discovered(c *runtimev1.ExtensionConfig) {
	o.printProgress(fmt.Sprintf("The management cluster has discovered %d handlers:", len(c.Status.Handlers)))
	for _, h := range c.Status.Handlers {
		o.printProgress(fmt.Sprintf("  %s  %s, timeout %ds, failure policy %s", h.Name, h.RequestHook.Hook, h.TimeoutSeconds, h.FailurePolicy))
	}
	if !o.ready {
		o.printProgress("Calls are shown below; Ctrl-C ends the extension and removes its registration.")
	}
	o.ready = true
}

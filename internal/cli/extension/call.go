package extension

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/extensiontools"
	"github.com/slipwayhq/slipway/internal/fault"
)

// callCommand returns the extension call command, for [Command].
func callCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "call HANDLER",
		Short: "Call a handler of an extension as the manager does",
		Long: `Call a handler of an extension that the management cluster has discovered, with the settings and the
namespace selector of its ExtensionConfig, and in the hook version that it serves. The request is
YAML or JSON; apiVersion and kind are optional. A failure is reported even if the failure policy
lets the manager continue.

HANDLER is "handler.extension", or only the name of the handler if exactly one extension has it.

Patches in the response are printed decoded; with -o they are printed as received, in base64.`,
		Example: "  slipway extension call check-owner -f testdata/before-cluster-create.yaml",
		Args:    term.ExactlyOneArgument("HANDLER"),
	}
	flags := management.AddClusterScopedFlags(cmd.Flags())
	format := term.AddOutputFlag(cmd.Flags())
	file := cmd.Flags().StringP("filename", "f", "", "file with the request; - reads standard input")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		request, err := readRequest(e, *file)
		if err != nil {
			return err
		}
		c, err := flags.Connect(e)
		if err != nil {
			return err
		}
		result, err := extensiontools.Call(cmd.Context(), c.Client, extensiontools.CallOptions{Handler: args[0], Request: request, Config: c.Config, Now: e.Now})
		if err != nil {
			if result.FailurePolicy == runtimev1.FailurePolicyIgnore && fault.KindOf(err) == fault.Unreachable {
				_, _ = fmt.Fprintf(e.Err, "The failure policy of %s is Ignore: the manager would go on.\n", result.Handler)
			}
			return c.Explain(err)
		}
		return format.Print(e.Out, result, func(w io.Writer) error { return callText(w, result) })
	}
	return cmd
}

func readRequest(e term.Env, file string) ([]byte, error) {
	var data []byte
	var err error
	switch file {
	case "":
		return nil, fault.New(fault.Invalid, "Usage", "the request is missing; name its file with -f, or - for standard input")
	case "-":
		data, err = io.ReadAll(e.In)
	default:
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "Request", "the request cannot be read: %v", err)
	}
	return data, nil
}

// callText prints the response as YAML with decoded patches, which are base64 in the JSON response.
func callText(w io.Writer, r extensiontools.CallResult) error {
	data, err := json.Marshal(r.Response)
	if err != nil {
		return err
	}
	var readable any
	if err := json.Unmarshal(data, &readable); err != nil {
		return err
	}
	response, err := yaml.Marshal(decodePatches(readable))
	if err != nil {
		return err
	}
	took := time.Duration(r.Seconds * float64(time.Second)).Round(100 * time.Microsecond)
	if r.Object != "" {
		r.Object = " for " + r.Object
	}
	_, err = fmt.Fprintf(w, "# %s responded to %s%s after %s\n%s", r.Handler, r.Hook, r.Object, took, response)
	return err
}

// decodePatches returns the value with all patches decoded; other values are unchanged.
func decodePatches(value any) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = decodePatches(v[i])
		}
	case map[string]any:
		for key, inner := range v {
			v[key] = decodePatches(inner)
			if text, ok := inner.(string); ok && key == "patch" {
				v[key] = patch(text)
			}
		}
	}
	return value
}

func patch(text string) any {
	var said any
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(data, &said) != nil {
		return text
	}
	return said
}

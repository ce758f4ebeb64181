package extension

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/extension/recording"
)

// recordCommand returns the extension record command, for [Command].
func recordCommand(e term.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "record FILE -- COMMAND [ARGUMENTS]",
		Short: "Run an extension and record every call",
		Long: `Run an extension like "slipway extension run", and write every call to FILE, one JSON document per
line: the exact bytes of the request, the response, and the duration. The data of Secrets is
redacted. "slipway extension replay" and the test kit of the SDK replay the recorded calls.`,
		Example: "  slipway extension record calls.jsonl -- go run .\n  slipway extension replay calls.jsonl -- go run .",
	}
	o := addSessionFlags(cmd, e)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) < 1 || cmd.ArgsLenAtDash() == 0 {
			return fault.New(fault.Invalid, "Usage", "the file of the recording is missing before \"--\"; see %q", cmd.CommandPath()+" --help")
		}
		file, err := os.OpenFile(args[0], os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return fault.New(fault.Invalid, "Recording", "the recording cannot be written: %v", err)
		}
		count, w := 0, recording.NewWriter(file)
		err = o.Run(cmd, args[1:], func(c recording.Call) error {
			count++
			return w.Write(c)
		})
		err = errors.Join(err, file.Close())
		if err != nil && count == 0 { // so that the same command can be repeated
			return errors.Join(err, os.Remove(args[0]))
		}
		_, _ = fmt.Fprintf(e.Err, "%d calls are in %s.\n", count, args[0])
		return err
	}
	return cmd
}

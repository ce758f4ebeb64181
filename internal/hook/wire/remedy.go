package wire

import (
	"fmt"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Called is the handler that a call was about.
type Called struct {
	// Extension is the name of the ExtensionConfig.
	Extension string
	// Timeout is how long the call could take, Longest how long any can.
	Timeout, Longest time.Duration
}

// Describe returns the message of a failed call, and what to do about it where the message does not have that. unreadable: what
// came back was no answer of a hook.
func (c *Conn) Describe(f *fault.Fault, of Called, unreadable bool) string {
	settings := "spec.clientConfig of ExtensionConfig " + of.Extension
	switch f.Reason {
	case ReasonRefused, ReasonNoRoute, ReasonHostUnknown, ReasonTransportFailed:
		return fmt.Sprintf("%s: start the extension, or correct %s", f.Message, settings)
	case ReasonTimeout:
		return fmt.Sprintf("%s did not answer within %s: it is slow or hangs; make it faster, or raise timeoutSeconds of the handler (now %d, at most %d)",
			c.endpoint.Host(), of.Timeout, int(of.Timeout.Seconds()), int(of.Longest.Seconds()))
	case ReasonLost, ReasonTooLarge:
		return f.Message + ": correct the extension"
	case ReasonHTTPStatus, ReasonRedirect, ReasonTLS:
		unreadable = true
	}
	if unreadable {
		return fmt.Sprintf("%s: correct the extension, or %s if that names another server", f.Message, settings)
	}
	return f.Message
}

package hook

import (
	"fmt"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
)

// CallInfo describes the handler of a failed call.
type CallInfo struct {
	// Extension is the name of the ExtensionConfig.
	Extension string
	// Timeout was the timeout of the call; Longest is the largest timeout of any call.
	Timeout, Longest time.Duration
}

// Describe returns the message of a failed call, and adds a remedy if the message has none. unreadable means that the
// response could not be parsed.
func (c *Conn) Describe(f *fault.Fault, of CallInfo, unreadable bool) string {
	settings := "spec.clientConfig of ExtensionConfig " + of.Extension
	switch f.Reason {
	case reasonRefused, reasonNoRoute, reasonHostUnknown, reasonTransportFailed:
		return fmt.Sprintf("%s: start the extension, or correct %s", f.Message, settings)
	case reasonTimeout:
		return fmt.Sprintf("%s did not answer within %s: it is slow or hangs; make it faster, or raise timeoutSeconds of the handler (now %d, at most %d)",
			c.endpoint.Host(), of.Timeout, int(of.Timeout.Seconds()), int(of.Longest.Seconds()))
	case reasonLost, reasonTooLarge:
		return f.Message + ": correct the extension"
	case reasonHTTPStatus, reasonRedirect, reasonTLS:
		unreadable = true
	}
	if unreadable {
		return fmt.Sprintf("%s: correct the extension, or %s if that names another server", f.Message, settings)
	}
	return f.Message
}

package hook

import (
	"fmt"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hook/wire"
)

// withRemedy returns the message of a failed call of a handler, and what to do about it where the message does not have that.
func (t target) withRemedy(f *fault.Fault) string {
	settings := "spec.clientConfig of ExtensionConfig " + t.name
	switch f.Reason {
	case wire.ReasonRefused, wire.ReasonNoRoute, wire.ReasonHostUnknown, wire.ReasonTransportFailed:
		return fmt.Sprintf("%s: start the extension, or correct %s", f.Message, settings)
	case wire.ReasonTimeout:
		return fmt.Sprintf("%s did not answer within %s: it is slow or hangs; make it faster, or raise timeoutSeconds of the handler (now %d, at most %d)",
			t.conn.Endpoint().Host(), t.timeout(), int(t.timeout().Seconds()), int(MaxTimeout.Seconds()))
	case wire.ReasonLost, wire.ReasonTooLarge:
		return f.Message + ": correct the extension"
	case ReasonNotJSON, wire.ReasonHTTPStatus, wire.ReasonRedirect, wire.ReasonTLS:
		return fmt.Sprintf("%s: correct the extension, or %s if that names another server", f.Message, settings)
	}
	return f.Message
}

// timeout is how long a call of the handler may take.
func (t target) timeout() time.Duration { return min(t.handler.Timeout, MaxTimeout) }

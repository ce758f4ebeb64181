package extension

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/slipwayhq/slipway/sdk/extension/recording"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

// printer prints each call of the extension on one line, and records it. "extension run" and "record" pass its method
// call to the session, whose proxy reports calls concurrently.
type printer struct {
	mu          sync.Mutex
	out         io.Writer
	record      func(recording.Call) error
	reportError func(string)
}

// call prints and records a call. A failed recording is reported and does not end the session.
func (p *printer) call(c recording.Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintln(p.out, line(c))
	if p.record == nil {
		return
	}
	if err := p.record(c); err != nil {
		p.reportError("The call is not recorded: " + err.Error())
	}
}

// line formats a call as text: time, hook, handler, object, result, duration, message. The printer prints each call
// with it.
func line(c recording.Call) string {
	took := time.Duration(c.Seconds * float64(time.Second)).Round(100 * time.Microsecond)
	fields := []string{c.Time.Local().Format("15:04:05"), hookName(c.Hook)}
	for _, f := range []string{c.Handler, c.Object} {
		if f != "" {
			fields = append(fields, f)
		}
	}
	result, message := resultOf(c)
	fields = append(fields, result, took.String())
	if message != "" {
		fields = append(fields, message)
	}
	return strings.Join(fields, "  ")
}

// resultOf returns the result of a call: the status of the response, or the problem if there is no valid one.
func resultOf(c recording.Call) (result, message string) {
	var r struct {
		Status, Message   string
		RetryAfterSeconds int32
	}
	switch {
	case c.Error != "":
		return "no answer", c.Error
	case c.Code != 200:
		return fmt.Sprintf("HTTP %d", c.Code), oneLine(c.Response)
	case json.Unmarshal([]byte(c.Response), &r) != nil || r.Status == "":
		return "invalid response", "it is not a response of the hook"
	case r.RetryAfterSeconds > 0:
		return fmt.Sprintf("%s, again in %ds", r.Status, r.RetryAfterSeconds), oneLine(r.Message)
	}
	return r.Status, oneLine(r.Message)
}

// oneLine returns the beginning of a text on one line.
func oneLine(s string) string {
	const most = 160
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + " …"
	}
	return s
}

// hookName returns the name of a hook for its lower-case form in the URL of a call. "extension replay" prints calls
// with it, too.
func hookName(lower string) string {
	for _, h := range hooks.ClusterAPI() {
		if strings.EqualFold(h.ID.Hook, lower) {
			return h.ID.Hook
		}
	}
	return lower
}

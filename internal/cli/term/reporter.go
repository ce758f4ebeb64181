package term

import (
	"github.com/slipwayhq/slipway/internal/operate/progress"
)

// Reporter returns a progress reporter for standard error: live lines on a terminal, one line per change elsewhere.
func Reporter(e Env) progress.Reporter {
	s := Of(e, e.Err)
	if s.Live {
		return progress.NewLive(Raw(e.Err), progress.TerminalOptions{Width: s.Width, Unicode: s.Unicode, Color: s.Color}, e.Now)
	}
	return progress.NewPlain(e.Err, e.Now)
}

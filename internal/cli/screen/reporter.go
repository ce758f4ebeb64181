package screen

import (
	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/clusterctl/progress"
)

// Reporter returns a progress reporter for standard error: live lines on a terminal, one line per change elsewhere.
func Reporter(e env.Env) progress.Reporter {
	s := Of(e, e.Err)
	if s.Live {
		return progress.NewLive(env.Raw(e.Err), progress.TerminalOptions{Width: s.Width, Unicode: s.Unicode, Color: s.Color}, e.Now)
	}
	return progress.NewPlain(e.Err, e.Now)
}

package extension

import (
	"net/http"
	"time"
)

// WithAfter returns the configuration with a clock for its shutdown delay.
func (c Config) WithAfter(after func(time.Duration) <-chan time.Time) Config {
	c.after = after
	return c
}

// HandlerOf serves the hooks as a configuration says.
func (x *Extension) HandlerOf(cfg Config) http.Handler { return x.handler(cfg) }

package extension

import "time"

// WithAfter returns the configuration with a clock for its shutdown delay.
func (c Config) WithAfter(after func(time.Duration) <-chan time.Time) Config {
	c.after = after
	return c
}

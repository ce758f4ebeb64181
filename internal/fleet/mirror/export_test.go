package mirror

import "time"

// NewStore is exported for tests.
func NewStore(onChange func(Change)) *Store { return newStore(onChange) }

// SetRediscover changes the interval in which kinds are read again.
func (m *Mirror) SetRediscover(d time.Duration) { m.rediscover = d }

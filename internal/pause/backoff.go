package pause

import "time"

// Backoff returns the delay before the next attempt after a number of consecutive failures: first after one failure,
// doubled for each further one, up to longest. It is zero without failures. Supervisors of child processes use it for
// restarts, and clients of other systems for retries.
func Backoff(failures int, first, longest time.Duration) time.Duration {
	if failures <= 0 {
		return 0
	}
	delay := first
	for range failures - 1 {
		if delay >= longest {
			break
		}
		delay *= 2
	}
	return min(delay, longest)
}

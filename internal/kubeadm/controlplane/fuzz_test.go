package controlplane

import "testing"

// FuzzRecord: the record of a remediation in an annotation cannot be read, or says the same when it is written again.
func FuzzRecord(f *testing.F) {
	for _, text := range []string{
		`{"machine":"m","timestamp":"2026-01-02T03:04:05Z","retryCount":2}`, `{"machine":"","timestamp":"2026-01-02T03:04:05Z"}`, `{`, `{"machine":"m","retryCount":-1}`,
		`{"machine":"m","timestamp":"9999-12-31T23:59:59.999999999+23:59","retryCount":99999999999}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, ok := parse(text)
		if !ok {
			return
		}
		if r.RetryCount < 0 || r.RetryCount > 1<<31-1 {
			t.Errorf("%q has been tried %d times", text, r.RetryCount)
		}
		again, ok := parse(r.Text())
		if !ok || again.Machine != r.Machine || again.RetryCount != r.RetryCount || !again.Timestamp.Equal(r.Timestamp) {
			t.Errorf("%q is %v and then %v, %v", text, r, again, ok)
		}
	})
}
